/* Search from the file system: browsers start no Worker for a file:// page, so a hidden frame stands in for one.
   The theme's search worker imports its libraries by importScripts, waits for them, and talks by messages. */
if (location.protocol === "file:") {
  const prelude = `
    function importScripts(...urls) {
      return urls.reduce((before, url) => before.then(() => new Promise((done, failed) => {
        const script = document.createElement("script");
        Object.assign(script, { src: url, onload: done, onerror: failed });
        document.body.append(script);
      })), Promise.resolve());
    }
    function postMessage(data) { parent.postMessage(data, "*"); }`;
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise(done => this.frame.addEventListener("load", done, { once: true }));
      this.frame.srcdoc = `<body><script>${prelude}<\/script><script src="${url}"><\/script>`;
      document.body.append(this.frame);
      window.addEventListener("message", event => {
        if (event.source === this.frame.contentWindow)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
    }
    postMessage(data) {
      this.ready.then(() => {
        const inside = this.frame.contentWindow;
        inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      });
    }
    terminate() { this.frame.remove(); }
  };
}
