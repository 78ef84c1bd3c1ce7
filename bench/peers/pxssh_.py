from pexpect import pxssh

from driver import ADDR, KEY, KNOWN, PORT, USER, serve

kept = []  # what must stay open
fresh = []  # what cold has made, until done


def connect():
    s = pxssh.pxssh(options={"UserKnownHostsFile": KNOWN}, encoding="utf-8", echo=False)
    s.login(ADDR, USER, port=PORT, ssh_key=KEY)
    return s


def execute(s, command):
    s.sendline(command)
    if not s.prompt():
        raise TimeoutError("no prompt")
    return s.before


def cold(command):
    fresh.append(connect())
    return execute(fresh[0], command)


def done(_):
    fresh.pop().logout()


serve({
    "open": lambda _: kept.append(connect()),
    "run": lambda command: execute(kept[0], command),
    "cold": cold,
    "done": done,
})
