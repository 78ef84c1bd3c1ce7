"""What the drivers have in common: a line of JSON, [verb, text], is answered with one, {"out": …} or {"error": …}."""

import json
import sys

ADDR, PORT, USER, KEY, KNOWN, CONFIG, NAME = sys.argv[1:8]
PORT = int(PORT)


def serve(verbs):
    answers = sys.stdout
    sys.stdout = sys.stderr  # what a library prints is no answer
    for line in sys.stdin:
        verb, text = json.loads(line)
        try:
            out = "" if verb == "hello" else verbs[verb](text) or ""
            answer = {"out": out}
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}"[:300]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
