"""A small wrapper as people write it around `codex exec`: capture, time out, kill the group. Prints what came as JSON."""
import json
import os
import signal
import subprocess
import sys


def run_capture(argv, prompt, timeout):
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    timed_out = False
    try:
        stdout, stderr = process.communicate(prompt, timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=10)
    events = [json.loads(line) for line in stdout.splitlines() if line.strip()]
    messages = [e["item"]["text"] for e in events if e["type"] == "item.completed" and e["item"]["type"] == "agent_message"]
    return {
        "code": process.returncode,
        "timed_out": timed_out,
        "thread": next((e["thread_id"] for e in events if e["type"] == "thread.started"), None),
        "last": messages[-1] if messages else None,
        "end": events[-1]["type"] if events else None,
        "stderr": stderr,
    }


if __name__ == "__main__":
    timeout, prompt, *argv = sys.argv[1:]
    print(json.dumps(run_capture(argv, prompt, float(timeout))))
