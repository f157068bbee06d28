"""A headless Chromium that tests can look at and click in: its DevTools protocol over one websocket."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import websocket

PATIENCE_S = 60
OPTIONS = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars"
OPTIONS += " --remote-debugging-port=0 --remote-allow-origins=*"


class Chromium:
    """One browser with one page. Everything that the page says on its console is kept in `said`."""

    def __init__(self, program: str, folder: Path) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        """Addresses of everything that the page has asked for."""
        self._last = 0
        command = [program, *OPTIONS.split(), f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._socket = websocket.create_connection(self._address(folder), timeout=PATIENCE_S)
        except BaseException:
            self._process.kill()
            raise
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)  # the clipboard asks for the focus

    def _address(self, folder: Path) -> str:
        port = folder / "DevToolsActivePort"
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self._process.poll() is None:
            if port.is_file() and (lines := port.read_text().split()):
                with urlopen(f"http://127.0.0.1:{lines[0]}/json/list", timeout=PATIENCE_S) as answer:
                    pages = [target for target in json.load(answer) if target["type"] == "page"]
                if pages:
                    return pages[0]["webSocketDebuggerUrl"]
            time.sleep(0.1)
        raise RuntimeError(
            f"Chromium did not open its DevTools port within {PATIENCE_S} s (exit status {self._process.poll()})"
        )

    def close(self) -> None:
        """End the browser."""
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol and its answer; raises RuntimeError where the browser refuses."""
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.said.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.said.append(f"{params['type']}: {[a.get('value') or a.get('description') for a in params['args']]}")
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.said.append(f"{params['entry']['level']}: {params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited. Raises RuntimeError on an exception."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Until a JavaScript expression is true. Raises RuntimeError where it does not become so."""
        end = time.monotonic() + PATIENCE_S
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise RuntimeError(f"not within {PATIENCE_S} s: {condition}")
            time.sleep(0.05)

    def open(self, address: str, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        """Open an address in a window of this many CSS pixels."""
        self.size(width, height)
        self.prefer(dark)
        self.call("Page.navigate", url="about:blank")
        self.wait_for("location.href === 'about:blank' && document.readyState === 'complete'")
        self.call("Page.navigate", url=address)
        self.wait_for("location.href !== 'about:blank' && document.readyState === 'complete'")

    def size(self, width: int, height: int = 900) -> None:
        """The window's size in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def prefer(self, dark: bool) -> None:
        """What the system would say of light and dark."""
        said = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in said.items()]
        self.call("Emulation.setEmulatedMedia", features=features)

    def click(self, selector: str) -> None:
        """A real click in the middle of the first element of this selector, scrolled into view first."""
        x, y = self.run(f"""(() => {{
          const e = document.querySelector({json.dumps(selector)});
          e.scrollIntoView({{block: "center", inline: "center", behavior: "instant"}});
          const r = e.getClientRects()[0];
          return [r.left + r.width / 2, r.top + r.height / 2];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, key: str, text: str = "", code: int = 0, modifiers: int = 0) -> None:
        """One key pressed and released; `modifiers`: 1 Alt, 2 Ctrl, 4 Meta, 8 Shift."""
        params = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", **params, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **params)

    def write(self, text: str) -> None:
        """Text into what has the focus."""
        self.call("Input.insertText", text=text)
