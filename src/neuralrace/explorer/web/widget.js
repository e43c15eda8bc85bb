// The explorer in a notebook: the same page, with the messages of an anywidget.
// @ts-check
import { App } from "./app.js";
// @ts-ignore: the server has this module
import uPlot from "./vendor/uplot.js";

/** @param {{ model: any, el: HTMLElement }} given */
function render({ model, el }) {
  const root = document.createElement("div");
  root.classList.add("in-notebook");
  el.append(root);
  const heard = (/** @type {any} */ message) => (message.kind === "hello" ? undefined : link.receive(message));
  /** @type {import("./transport.js").Link} */
  const link = {
    send(message) {
      model.send(message);
      return true;
    },
    receive() {},
    changed() {},
    close() {
      model.off("msg:custom", heard);
    },
  };
  model.on("msg:custom", heard);
  const first = model.get("state");
  const keep = (/** @type {any} */ state) => {
    model.set("state", state);
    model.save_changes();
  };
  const app = new App(root, { link, uPlot, address: false, keys: root, first: first?.task ? first : undefined, keep });
  link.changed(true);
  return () => app.destroy();
}

export default { render };
