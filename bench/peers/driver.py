"""What the drivers have in common: a line of JSON, [verb, text], is answered with one, {"out": …} or {"error": …}."""

import json
import sys

ADDR, PORT, USER, KEY, KNOWN, CONFIG, NAME = sys.argv[1:8]
PORT = int(PORT)


def serve(connect, execute, close, **more):
    """Serves with a library's way to connect, to run a command there and to close; more are verbs of its own."""
    kept = []  # what must stay open
    fresh = []  # what cold has made, until done

    def cold(command):
        fresh.append(connect())
        return execute(fresh[0], command)

    verbs = {
        "hello": lambda _: None,
        "open": lambda _: kept.append(connect()),
        "run": lambda command: execute(kept[0], command),
        "cold": cold,
        "done": lambda _: close(fresh.pop()),
        **more,
    }
    answers = sys.stdout
    sys.stdout = sys.stderr  # what a library prints is no answer
    for line in sys.stdin:
        verb, text = json.loads(line)
        try:
            answer = {"out": verbs[verb](text) or ""}
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}"[:300]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
