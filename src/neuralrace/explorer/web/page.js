// The explorer as a page of its own.
// @ts-check
import { App } from "./app.js";
import { socketLink } from "./transport.js";
// @ts-ignore: the server has this module
import uPlot from "./vendor/uplot.js";

const address = new URL("api/live", document.baseURI);
address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
address.hash = "";

new App(document.body, { link: socketLink(address.href), uPlot, address: true, keys: document });
