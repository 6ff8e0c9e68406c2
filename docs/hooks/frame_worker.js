// Lets the search work in pages that are opened from disk. Browsers refuse workers there, so a hidden frame replaces
// the worker: it loads the same script and exchanges the same messages.
if (location.protocol === "file:") {
  const loadScripts = (...urls) =>
    urls.reduce((loaded, url) => loaded.then(() => new Promise((resolve, reject) => {
      document.body.append(Object.assign(document.createElement("script"), { src: url, onload: resolve, onerror: reject }));
    })), Promise.resolve());
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      window.addEventListener("message", event => {
        if (event.source === this.inner) this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
      this.ready = new Promise(resolve => frame.addEventListener("load", resolve, { once: true }));
      this.inner.document.open();
      this.inner.document.write(
        `<!doctype html><body><script>postMessage = data => parent.postMessage(data, "*");` +
        `importScripts = ${loadScripts};<\/script><script src="${url}"><\/script></body>`);
      this.inner.document.close();
    }
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
