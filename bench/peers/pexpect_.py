import pexpect

from driver import CONFIG, NAME, serve

PROMPT = "[PEXPECT]#"
kept = []  # what must stay open
fresh = []  # what cold has made, until done


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


def cold(command):
    fresh.append(connect())
    return execute(fresh[0], command)


def done(_):
    fresh.pop().close(force=True)


serve({
    "open": lambda _: kept.append(connect()),
    "run": lambda command: execute(kept[0], command),
    "cold": cold,
    "done": done,
})
