import pexpect

from driver import CONFIG, NAME, serve

PROMPT = "[PEXPECT]#"


def connect():
    s = pexpect.spawn("ssh", ["-tt", "-F", CONFIG, NAME], encoding="utf-8", echo=False)
    s.delaybeforesend = None
    s.sendline("stty -echo; PS1='[PEX''PECT]#'")
    s.expect_exact(PROMPT)
    return s


def execute(s, command):
    s.sendline(command)
    s.expect_exact(PROMPT)
    return s.before


serve(connect, execute, lambda s: s.close(force=True))
