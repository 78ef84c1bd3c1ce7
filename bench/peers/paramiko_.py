import paramiko

from driver import ADDR, KEY, KNOWN, PORT, USER, serve

idling = []  # what must stay open


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
        idling.append(client)
        idling.extend(client.invoke_shell() for _ in range(each))


serve(connect, execute, lambda client: client.close(), idle=idle)
