import paramiko

from driver import ADDR, KEY, KNOWN, PORT, USER, serve

kept = []  # what must stay open
fresh = []  # what cold has made, until done


def connect():
    client = paramiko.SSHClient()
    client.load_host_keys(KNOWN)
    client.connect(ADDR, PORT, USER, key_filename=KEY, look_for_keys=False, allow_agent=False)
    return client


def execute(client, command):
    _, out, _ = client.exec_command(command)
    text = out.read().decode()
    out.channel.recv_exit_status()
    return text


def idle(text):
    connections, each = map(int, text.split())
    for _ in range(connections):
        client = connect()
        kept.append(client)
        kept.extend(client.invoke_shell() for _ in range(each))


def cold(command):
    fresh.append(connect())
    return execute(fresh[0], command)


def done(_):
    fresh.pop().close()


serve({
    "open": lambda _: kept.append(connect()),
    "run": lambda command: execute(kept[0], command),
    "cold": cold,
    "done": done,
    "idle": idle,
})
