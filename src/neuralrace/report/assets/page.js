// Every drawing of curves becomes one that can be hovered, zoomed and hidden in parts.
"use strict";

const style = (element, name) => getComputedStyle(element).getPropertyValue(name).trim();
const shown = (v) => (v === null || v === undefined ? "" : String(Number(v.toPrecision(4))));
const faint = (rgb) => rgb.replace("rgb(", "rgba(").replace(")", ", 0.2)");
const positive = (log, v) => (v === null || (log && v <= 0) ? null : v);

function element(name, attributes, parent, text) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// Numbers as they stand at an axis: with as many digits as tell them apart.
function labels(values) {
  const known = values.filter((v) => v !== null);
  let digits = 4;
  const texts = () => known.map((v) => String(Number(v.toPrecision(digits))));
  while (digits < 12 && new Set(texts()).size < known.length) digits++;
  return values.map((v) => (v === null ? "" : String(Number(v.toPrecision(digits)))));
}

// Powers of ten between two positive ends; with 2 and 5 times these where there are less than four;
// round numbers where there are less than three of all of them.
function ticks(low, high) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const inside = (v) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9);
  const powers = [...Array(last - first + 1).keys()].map((n) => Number(`1e${first + n}`));
  const tens = powers.filter(inside);
  if (tens.length > 3) return tens.filter((_, i) => i % Math.ceil(tens.length / 7) === 0);
  const found = powers.flatMap((v) => [1, 2, 5].map((m) => Number((m * v).toPrecision(2)))).filter(inside);
  if (found.length > 2) return found;
  const rough = (high - low) / 7;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const width = unit * [1, 2, 5, 10].find((m) => m * unit >= rough * (1 - 1e-9));
  const round = [];
  for (let n = Math.ceil(low / width); n * width <= high; n++)
    round.push(Number((n * width).toPrecision(12)));
  return round;
}

// The columns that uPlot draws: x, then of each curve y, and low and high where it has seeds.
function columns(curves, xlog, ylog) {
  const tables = curves.map((curve) => {
    const kept = curve.x.map((x, i) => i).filter((i) => !xlog || curve.x[i] > 0);
    const parts = [curve.y].concat(curve.low ? [curve.low, curve.high] : []);
    return [kept.map((i) => curve.x[i])].concat(
      parts.map((part) => kept.map((i) => positive(ylog, part[i])))
    );
  });
  return uPlot.join(tables);
}

// The pixels that the numbers at an upright axis need.
const room = (_, texts) => Math.max(54, 12 + 7.2 * Math.max(0, ...(texts || []).map((text) => text.length)));

function live(figure) {
  const given = JSON.parse(figure.querySelector("script").textContent);
  const legend = [...figure.querySelectorAll(".legend button")];
  const place = element("div", { class: "chart" }, figure);
  figure.querySelector(".drawing").after(place);
  const tools = element("div", { class: "tools" }, figure);
  place.after(tools);
  const log = element("button", { type: "button" }, tools, "log axis");
  element("span", { class: "hint" }, tools, "Drag to zoom; click a name to hide its curve.");
  const whole = element("button", { type: "button" }, tools, "whole range");
  const at = element("span", { class: "at" }, tools);
  const hidden = new Set();
  const series = []; // of each column but the first: the curve it belongs to
  const layers = ["relu", "simulation", "theory"]; // theory on top
  const order = layers.flatMap((kind) =>
    given.curves.map((_, i) => i).filter((i) => given.curves[i].kind === kind)
  );
  order.forEach((i) => series.push(...(given.curves[i].low ? [i, i, i] : [i])));
  const firsts = given.curves.map((_, i) => series.indexOf(i) + 1);
  const whole_x = given.curves.every((curve) => curve.x.every(Number.isInteger)); // counts
  const counts = [...Array(16).keys()].flatMap((n) => [1, 2, 5].map((m) => m * 10 ** n));
  log.hidden = !given.curves.some((curve) => curve.y.some((y) => y > 0));
  let ylog = given.ylog;
  let plot = null;
  let all = false; // whether the whole range was asked for: at first the axis ends where curves rest

  function size() {
    const width = Math.max(240, place.clientWidth);
    return { width, height: Math.round(Math.min(360, Math.max(240, width * 0.5))) };
  }

  function scale(isLog) {
    const room = (low, high) => (high > low ? (high / low) ** 0.04 : 2);
    const range = (u, low, high) =>
      low === null ? [0.1, 1] : [low / room(low, high), high * room(low, high)];
    return isLog ? { distr: 3, range } : { distr: 1 };
  }

  function axis(label, isLog) {
    const font = "12px " + style(document.body, "font-family");
    return {
      label, font, labelFont: "13px " + style(document.body, "font-family"), labelSize: 22,
      stroke: style(document.body, "--soft"), grid: { stroke: style(document.body, "--faint"), width: 1 },
      ticks: { show: false }, gap: 4,
      ...(isLog && { splits: (u, i, low, high) => ticks(low, high), filter: (u, all) => all }),
      values: (_, splits) => labels(splits),
    };
  }

  function drawn() {
    const lines = [{}];
    const bands = [];
    series.forEach((i, k) => {
      const first = k + 1 === firsts[i];
      const line = legend[i].querySelector("line");
      const stroke = style(line, "stroke");
      const kind = given.curves[i].kind;
      lines.push({
        show: !hidden.has(i), stroke: first ? stroke : "transparent",
        width: parseFloat(style(line, "stroke-width")), dash: kind === "theory" ? style(line, "stroke-dasharray").split(/[ ,]+/).map(parseFloat) : undefined,
        points: { show: first && given.curves[i].x.length <= 12, size: 7, fill: stroke },
        label: String(i),
      });
      if (first && given.curves[i].low)
        bands.push({ series: [k + 3, k + 2], fill: faint(stroke) });
    });
    const options = {
      ...size(), series: lines, bands, legend: { show: false }, padding: [8, 10, 0, 0],
      scales: {
        x: { time: false, distr: given.xlog ? 3 : 1 },
        y: scale(ylog),
      },
      axes: [{ ...axis(given.xlabel, given.xlog), ...(whole_x && { incrs: counts }), size: 26 }, { ...axis(given.ylabel, ylog), size: room }],
      cursor: {
        drag: { x: true, y: true, uni: 40, dist: 5 },
        y: false, points: { size: (u, k) => (firsts.includes(k) ? 7 : 0) },
        dataIdx: (u, k, at) => nearest(u.data[k], at),
      },
      hooks: { setCursor: [read], setScale: [zoomed], setSelect: [selected] },
    };
    place.replaceChildren();
    if (plot) plot.destroy();
    const curves = order.map((i) => given.curves[i]);
    plot = new uPlot(options, columns(curves, given.xlog, ylog), place);
    touch(plot);
    log.setAttribute("aria-pressed", String(ylog));
    whole.disabled = true;
    if (given.until && !all) plot.setScale("x", { min: plot.data[0][0], max: given.until });
  }

  function nearest(values, at) {
    for (let d = 0; d < values.length; d++)
      for (const i of [at - d, at + d]) if (values[i] !== undefined && i in values) return i;
    return at;
  }

  function read(u) {
    const { idx, idxs } = u.cursor;
    const inside = idx !== null && idx !== undefined;
    at.textContent = inside ? `${given.xlabel} ${shown(u.data[0][idx])}` : "";
    legend.forEach((button, i) => {
      const value = inside ? u.data[firsts[i]][idxs[firsts[i]]] : null;
      button.querySelector("output").textContent = hidden.has(i) ? "" : shown(value);
    });
  }

  function zoomed(u, key) {
    const x = u.data[0];
    const { min, max } = u.scales.x;
    if (key === "x") whole.disabled = min <= x[0] && max >= x[x.length - 1];
  }

  function selected(u) {
    if (u.select.width > 0 && u.select.height > 0) whole.disabled = false;
  }

  // Two fingers zoom along x; one finger reads values, and scrolls the page up and down.
  function touch(u) {
    const fingers = new Map();
    let begin = null;
    const spread = () => {
      const [a, b] = [...fingers.values()];
      return { middle: (a + b) / 2, apart: Math.max(10, Math.abs(a - b)) };
    };
    const left = (event) => event.clientX - u.over.getBoundingClientRect().left;
    u.over.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "touch") return;
      fingers.set(event.pointerId, left(event));
      if (fingers.size === 2) {
        const now = spread();
        begin = { ...now, value: u.posToVal(now.middle, "x"), ...u.scales.x };
      }
    });
    u.over.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      fingers.set(event.pointerId, left(event));
      if (fingers.size === 1) u.setCursor({ left: left(event), top: u.over.clientHeight / 2 });
      if (fingers.size !== 2 || !begin || given.xlog) return;
      const now = spread();
      const range = ((begin.max - begin.min) * begin.apart) / now.apart;
      const min = begin.value - (range * now.middle) / u.over.clientWidth;
      const x = u.data[0];
      u.setScale("x", { min: Math.max(x[0], min), max: Math.min(x[x.length - 1], min + range) });
    });
    for (const name of ["pointerup", "pointercancel", "pointerleave"])
      u.over.addEventListener(name, (event) => {
        fingers.delete(event.pointerId);
        begin = null;
      });
  }

  legend.forEach((button, i) => {
    button.disabled = false;
    button.addEventListener("click", () => {
      hidden.has(i) ? hidden.delete(i) : hidden.add(i);
      button.setAttribute("aria-pressed", String(!hidden.has(i)));
      series.forEach((j, k) => j === i && plot.setSeries(k + 1, { show: !hidden.has(i) }));
      read(plot);
    });
  });
  log.addEventListener("click", () => { ylog = !ylog; drawn(); });
  whole.addEventListener("click", () => { all = true; drawn(); });
  figure.classList.add("live");
  drawn();
  new ResizeObserver(() => size().width !== plot.width && plot.setSize(size())).observe(figure);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawn);
}

for (const figure of document.querySelectorAll("figure.curves")) live(figure);
