"""A lock of a cluster, by way of an agent: only the standard library.

    python3 lock.py SOCKET [NAME]

holds the lock NAME while it counts to three, and says what it sees.
"""

import http.client
import json
import os
import socket
import sys
import threading
import time
from urllib.parse import quote


def now():
    """Seconds on a clock that also runs while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Refused(Exception):
    """What the agent says instead: a word for programs, and a sentence."""

    def __init__(self, status, said):
        super().__init__(said.get("sentence", f"status {status}"))
        self.word = said.get("error", "")


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("agent", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Session:
    """A session with an agent, kept up by a thread. What it holds may be used until `until`."""

    def __init__(self, path, ttl=1.5):
        self.path, self.ttl = path, ttl
        self.until, self.lost = 0.0, set()
        opening = {"ttl_ms": int(ttl * 1000), "pid": os.getpid()}
        self.id = self.call("POST", "/v1/sessions", opening)["session"]
        self.over = threading.Event()
        self.ping()
        threading.Thread(target=self._keep_up, daemon=True).start()

    def call(self, method, path, body=None, timeout=None):
        connection = _Connection(self.path, timeout or self.ttl)
        try:
            headers = {"content-type": "application/json"} if body is not None else {}
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            text = answer.read()
            said = json.loads(text) if text else {}
            if answer.status >= 400:
                raise Refused(answer.status, said)
            return said
        finally:
            connection.close()

    def ping(self):
        begun = now()
        said = self.call("POST", f"/v1/sessions/{self.id}", timeout=self.ttl / 4)
        # What is lost first: the rest may then be used for longer.
        self.lost = {lost["grant"] for lost in said["lost"]}
        self.until = max(self.until, begun + said["left_ms"] / 1000)

    def _keep_up(self):
        while not self.over.wait(self.ttl / 4):
            try:
                self.ping()
            except Refused:
                return  # It is over: `until` stays where it is.
            except OSError:
                pass  # An agent that does not answer is asked again.

    def lock(self, name, owner="", wait=None, **more):
        """Takes a lock; `shared=True` or `permits=3` among `more`."""
        wish = {"name": name, "owner": owner, **more}
        if wait is not None:
            wish["wait_ms"] = int(wait * 1000)
        patience = None if wait is None else wait + self.ttl
        granted = self.call("POST", f"/v1/sessions/{self.id}/locks", wish, patience or 3600)
        return Guard(self, name, granted)

    def close(self):
        self.over.set()
        self.call("DELETE", f"/v1/sessions/{self.id}")


class Guard:
    """A lock that is held. Use it in a `with`."""

    def __init__(self, session, name, granted):
        self.session, self.name = session, name
        self.grant, self.fence = granted["grant"], granted["fence"]

    def check(self):
        """How long it may still be used, in seconds. Asks nobody: it is right after a pause, too."""
        left = self.session.until - now()
        if left <= 0 or self.grant in self.session.lost:
            raise RuntimeError(f"the lock {self.name} is lost")
        return left

    def __enter__(self):
        return self

    def __exit__(self, *_):
        path = f"/v1/sessions/{self.session.id}/locks/{quote(self.name, safe='')}"
        try:
            self.session.call("DELETE", f"{path}?grant={self.grant}")
        except (Refused, OSError):
            pass  # It is lost, or will be: nobody is harmed by a release that comes late.


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    session = Session(sys.argv[1])
    name = sys.argv[2] if len(sys.argv) > 2 else "example"
    with session.lock(name, owner="lock.py", wait=10) as guard:
        print(f"holds {name}, fence {guard.fence}", flush=True)
        for number in range(3):
            print(f"{number + 1}, may go on for {guard.check():.1f} s", flush=True)
            time.sleep(0.1)
    session.close()


if __name__ == "__main__":
    main()
