from fabric import Config, Connection

from driver import ADDR, KEY, PORT, USER, serve

kept = []  # what must stay open
fresh = []  # what cold has made, until done


def connect():
    # The peer's own defaults, which take any host key.
    config = Config(overrides={"load_ssh_configs": False, "run": {"hide": True, "in_stream": False}})
    c = Connection(ADDR, USER, PORT, config=config,
                   connect_kwargs={"key_filename": KEY, "look_for_keys": False, "allow_agent": False})
    c.open()
    return c


def cold(command):
    fresh.append(connect())
    return fresh[0].run(command).stdout


def done(_):
    fresh.pop().close()


serve({
    "open": lambda _: kept.append(connect()),
    "run": lambda command: kept[0].run(command).stdout,
    "cold": cold,
    "done": done,
})
