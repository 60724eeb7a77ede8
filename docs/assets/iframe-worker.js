// Searching in a site that is opened from a folder: browsers start no workers from file: addresses, so there a
// worker's script runs in a hidden frame of the page, with the same messages to and fro.
"use strict";
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = []; // what is sent before the script has run
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => this.answer(data);
      inner.importScripts = (...scripts) => Promise.all(scripts.map((each) => this.run(each)));
      this.run(address).then(() => {
        this.ready = true;
        this.waiting.splice(0).forEach((each) => this.postMessage(each));
      });
    }

    run(address) {
      const inside = this.frame.contentDocument;
      const script = inside.createElement("script");
      script.src = new URL(address, location.href).href;
      inside.body.append(script);
      return new Promise((done) => script.addEventListener("load", done));
    }

    answer(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      if (!this.ready) {
        this.waiting.push(data);
        return;
      }
      const inner = this.frame.contentWindow;
      const event = new inner.MessageEvent("message", { data });
      inner.dispatchEvent(event);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
