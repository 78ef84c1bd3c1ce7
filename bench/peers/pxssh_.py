from pexpect import pxssh

from driver import ADDR, KEY, KNOWN, PORT, USER, serve


def connect():
    s = pxssh.pxssh(options={"UserKnownHostsFile": KNOWN}, encoding="utf-8", echo=False)
    s.login(ADDR, USER, port=PORT, ssh_key=KEY)
    return s


def execute(s, command):
    s.sendline(command)
    if not s.prompt():
        raise TimeoutError("no prompt")
    return s.before


serve(connect, execute, lambda s: s.logout())
