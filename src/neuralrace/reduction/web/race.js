// A race, solved here: db/dt = mix · Σ_g (∂T_g/∂b) E_g − λ b,  E_g = S_g − Σ_h D_gh T_h.
"use strict";
const DATA = JSON.parse(document.getElementById("race").textContent);
const RTOL = 1e-9, POINTS = 300, COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#666"];
const SHOWN = COLOURS.length, LONGEST = 50;

// What a mode does: its velocity, its loss and the strength of its paths, for factors on S and D.
function system(mode, { S, D }, decay) {
  const { powers, group, count, mix } = mode, drives = mode.S.map((s, g) => s * (S[g] ?? S[0])), brakes = mode.D;
  const product = (b, p, less = -1) => p.reduce((m, n, l) => m * b[l] ** (n - (l === less)), 1);
  const totals = (b) => {
    const T = drives.map(() => 0);
    powers.forEach((p, i) => { T[group[i]] += count[i] * product(b, p); });
    return T;
  };
  const errors = (T) => drives.map((s, g) => s - D * brakes[g].reduce((sum, d, h) => sum + d * T[h], 0));
  return {
    totals,
    velocity(b) {
      const E = errors(totals(b)), slope = b.map(() => 0);
      powers.forEach((p, i) => p.forEach((n, k) => {
        if (n) slope[k] += count[i] * n * product(b, p, k) * E[group[i]];
      }));
      return b.map((x, k) => mix[k].reduce((sum, m, l) => sum + m * slope[l], 0) - decay * x);
    },
    loss(b) {  // what cannot be learned, and how far the paths are from the best, T = S/D
      const T = totals(b), E = errors(T), best = mode.inverse.map((row) => row.reduce((sum, x, h) => sum + x * drives[h] / D, 0));
      return mode.rest + T.reduce((sum, x, g) => sum + (drives[g] * best[g] - x * (drives[g] + E[g])) / 2, 0);
    },
  };
}

// Dormand and Prince's method of order 5(4), landing on every one of the times.
const A = [[], [1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9],
  [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
  [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
  [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]];
const OFF = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40];

function flow(velocity, b, times) {
  const out = [], least = 1e-12 * Math.max(...b.map(Math.abs), 1e-300);
  let t = 0, slope = velocity(b), step = Math.max(...times) * 1e-3;
  for (const end of times) {
    while (t < end) {
      const last = step >= end - t, h = last ? end - t : step, k = [slope];
      let next = b;
      for (let s = 1; s < 7; s++) {
        next = b.map((x, i) => x + h * A[s].reduce((sum, a, j) => sum + a * k[j][i], 0));
        k.push(velocity(next));
      }
      const off = Math.max(...b.map((x, i) => Math.abs(h * OFF.reduce((sum, a, j) => sum + a * k[j][i], 0))
        / (least + RTOL * Math.max(Math.abs(x), Math.abs(next[i])))));
      if (off <= 1) [t, b, slope] = [last ? end : t + h, next, k[6]];
      else if (h < 1e-14 * end) return out;  // it diverges: nothing more is drawn
      const grown = h * (off < Infinity ? Math.min(5, Math.max(0.2, 0.9 * off ** -0.2)) : 0.1);
      step = off <= 1 && last ? Math.max(step, grown) : grown;
    }
    out.push(b);
  }
  return out;
}

// The whole race for the settings of the page: its loss and the strength of every group of paths.
function solve(times, settings) {
  const loss = times.map(() => DATA.outside), strengths = [];
  for (const kind of DATA.kinds) {
    const factors = settings.kinds[kind.modes[0]], s = system(kind, factors, settings.decay);
    const path = flow(s.velocity, kind.start.map((b) => b * factors.start), times);
    path.forEach((b, i) => { loss[i] += kind.modes.length * s.loss(b); });
    for (let i = path.length; i < times.length; i++) loss[i] = NaN;
    const T = path.map(s.totals);
    kind.names.forEach((name, g) => strengths.push({ name, values: T.map((row) => row[g]) }));
  }
  return { loss, strengths };
}

// ---- the page ----------------------------------------------------------------------------------
const $ = (id) => document.getElementById(id);
const short = (x) => Number(x.toPrecision(3)).toString();

// Small weights grow at s − λ: how much longer the slowest mode takes that still grows.
function longer(decay) {
  const rates = DATA.kinds.map((kind) => kind.rate).filter((s) => s > 0), left = rates.filter((s) => s > decay);
  return decay && left.length ? Math.min(LONGEST, Math.min(...rates) / (Math.min(...left) - decay)) : 1;
}

function settings() {
  const value = (id) => Number($(id).value), kinds = {};
  for (const { modes } of DATA.kinds) {
    const name = modes[0];
    const drives = [...document.querySelectorAll(`[id^="S "][id$=" ${name}"]`)].map((input) => 2 ** Number(input.value));
    kinds[name] = { S: drives, D: 2 ** value(`D ${name}`), start: 10 ** value(`start ${name}`) };
  }
  const decay = value("decay");
  return { kinds, decay, until: DATA.until * longer(decay) * 2 ** value("until") };
}

function ticks(low, high) {
  const rough = (high - low) / 4, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * size).find((n) => n >= rough);
  const found = [];
  for (let x = Math.ceil(low / step - 1e-9) * step; x <= high * (1 + 1e-9); x += step) found.push(Math.abs(x) < step / 1e6 ? 0 : x);
  return found;
}

function draw(figure, times, curves, ylabel) {
  const [W, H, left, bottom, top] = [460, 280, 58, 42, 12], all = curves.flatMap((c) => c.values).filter(Number.isFinite);
  const low = Math.min(0, ...all), high = Math.max(...all, low + 1e-12), end = times.at(-1);
  const x = (t) => left + (W - left - 12) * t / end, y = (v) => H - bottom - (H - bottom - top) * (v - low) / (high - low);
  const line = (values) => values.map((v, i) => (Number.isFinite(v) ? `${i ? "L" : "M"}${x(times[i]).toFixed(2)} ${y(v).toFixed(2)}` : "")).join("");
  const text = (px, py, anchor, words, more = "") => `<text x="${px}" y="${py}" text-anchor="${anchor}" ${more}>${words}</text>`;
  figure.querySelector("svg").innerHTML = ticks(low, high).map((v) => `<path class="grid" d="M${left} ${y(v)}H${W - 12}"/>${text(left - 6, y(v) + 4, "end", short(v))}`).join("")
    + ticks(0, end).map((t) => text(x(t), H - bottom + 18, "middle", short(t))).join("")
    + `<path class="axis" d="M${left} ${top}V${H - bottom}H${W - 12}"/>` + text((W + left) / 2, H - 6, "middle", "time t/τ")
    + text(0, 0, "middle", ylabel, `transform="translate(13 ${(H - bottom + top) / 2}) rotate(-90)"`)
    + curves.map((c, i) => `<path class="curve" stroke="${COLOURS[i % SHOWN]}" d="${line(c.values)}"/>`).join("");
  figure.querySelector("ul").replaceChildren(...(curves.length < 2 ? [] : curves).map((c, i) => {
    const item = document.createElement("li");
    item.style.setProperty("--colour", COLOURS[i % SHOWN]);
    item.textContent = c.name;
    return item;
  }));
}

function update() {
  const now = settings(), times = Array.from({ length: POINTS }, (_, i) => now.until * i / (POINTS - 1));
  const { loss, strengths } = solve(times, now);
  draw($("loss"), times, [{ name: "loss", values: loss }], "loss");
  draw($("strengths"), times, strengths.slice(0, SHOWN), "strength of the paths");
  for (const kind of DATA.kinds) {
    const f = now.kinds[kind.modes[0]], name = kind.modes[0];
    f.S.forEach((s, g) => { $(`S ${g} ${name} value`).textContent = f.S.length === kind.S.length ? short(s * (kind.letters.S ?? kind.S[g])) : `× ${short(s)}`; });
    $(`D ${name} value`).textContent = kind.letters.D ? short(f.D * kind.letters.D) : `× ${short(f.D)}`;
    $(`start ${name} value`).textContent = kind.start.length < 2 ? short(f.start * kind.start[0]) : `× ${short(f.start)}`;
  }
  $("decay value").textContent = short(now.decay);
  $("until value").textContent = short(now.until);
  const clean = (x) => (Math.abs(x) < 1e-9 * loss[0] ? 0 : x);
  $("end").textContent = Number.isFinite(loss.at(-1)) ? `Loss: ${short(loss[0])} at first, ${short(clean(loss.at(-1)))} at t = ${short(now.until)}.` : "The weights diverge here.";
}

document.querySelectorAll("input").forEach((input) => input.addEventListener("input", update));
$("reset").addEventListener("click", () => { document.querySelectorAll("input").forEach((i) => { i.value = i.defaultValue; }); update(); });
update();
