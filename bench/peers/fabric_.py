from fabric import Config, Connection

from driver import ADDR, KEY, PORT, USER, serve


def connect():
    # The peer's own defaults, which take any host key.
    config = Config(overrides={"load_ssh_configs": False, "run": {"hide": True, "in_stream": False}})
    c = Connection(ADDR, USER, PORT, config=config,
                   connect_kwargs={"key_filename": KEY, "look_for_keys": False, "allow_agent": False})
    c.open()
    return c


serve(connect, lambda c, command: c.run(command).stdout, lambda c: c.close())
