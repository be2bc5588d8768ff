/* The pictures of the tour: sliders bend a forecaster, and pictures, bars and a sentence follow.
 *
 * Every picture of docs/tour/index.md is a still one until this script has run. Numbers come from tour_numbers.js.
 */
(function () {
  "use strict";

  const numbers = window.calibrantTour;

  // Words

  const number = (value) => (Math.abs(value) < 5e-7 ? "0" : value.toFixed(4));
  const points = (value) => (100 * value).toFixed(1);
  const percent = (value) => `${Math.round(100 * value)}%`;
  const count = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
  const inPoints = (value, sign = false) => {
    const size = +Math.abs(100 * value).toFixed(1);
    const before = value < 0 ? "−" : sign && value > 0 ? "+" : "";
    return `${before}${size} ${size === 1 ? "point" : "points"}`;
  };

  // Pictures

  const path = (pairs) => pairs.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join("");

  /** A frame with axes: where values go on paper, and what is drawn of the axes themselves. */
  function frame({ width = 360, height = 290, left = 48, right = 12, top = 30, bottom = 42, ...axes }) {
    const { x, y, xTicks, yTicks, xLabel, yLabel, title, logX, logY } = axes;
    const place = (value, [low, high], log) =>
      log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    const at = {
      x: (value) => left + place(value, x, logX) * (width - left - right),
      y: (value) => height - bottom - place(value, y, logY) * (height - top - bottom),
    };
    const label = (tick) => (Array.isArray(tick) ? tick : [tick, String(tick)]);
    const parts = [`<text class="tour-title" x="${left}" y="17">${title}</text>`];
    xTicks.map(label).forEach(([value, text]) => {
      const spot = at.x(value);
      parts.push(`<line class="tour-grid" x1="${spot}" x2="${spot}" y1="${top}" y2="${height - bottom}"/>`);
      parts.push(`<text class="tour-tick" x="${spot}" y="${height - bottom + 16}" text-anchor="middle">${text}</text>`);
    });
    yTicks.map(label).forEach(([value, text]) => {
      const spot = at.y(value);
      parts.push(`<line class="tour-grid" x1="${left}" x2="${width - right}" y1="${spot}" y2="${spot}"/>`);
      parts.push(`<text class="tour-tick" x="${left - 7}" y="${spot + 4}" text-anchor="end">${text}</text>`);
    });
    if (xLabel) {
      const middle = (left + width - right) / 2;
      parts.push(`<text class="tour-axis" x="${middle}" y="${height - 7}" text-anchor="middle">${xLabel}</text>`);
    }
    if (yLabel) {
      const middle = (top + height - bottom) / 2;
      const turned = `transform="rotate(-90 12 ${middle})"`;
      parts.push(`<text class="tour-axis" x="12" y="${middle}" text-anchor="middle" ${turned}>${yLabel}</text>`);
    }
    return {
      at,
      box: { left, right: width - right, top, bottom: height - bottom },
      add: (...more) => parts.push(...more),
      line: (name, pairs) => parts.push(`<path class="${name}" d="${path(pairs.map(([a, b]) => [at.x(a), at.y(b)]))}"/>`),
      area: (name, upper, lower) =>
        parts.push(
          `<path class="${name}" d="${path([...upper, ...lower.slice().reverse()].map(([a, b]) => [at.x(a), at.y(b)]))}Z"/>`,
        ),
      band: (name, from, to) =>
        parts.push(
          `<rect class="${name}" x="${at.x(from)}" width="${Math.max(at.x(to) - at.x(from), 0.5)}" y="${top}" ` +
            `height="${height - bottom - top}"/>`,
        ),
      words: (text, a, b, { name = "tour-words", anchor = "start", dx = 0, dy = 0 } = {}) =>
        parts.push(
          `<text class="${name}" x="${at.x(a) + dx}" y="${at.y(b) + dy}" text-anchor="${anchor}">${text}</text>`,
        ),
      drawn: (said) =>
        `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${said}">${parts.join("")}</svg>`,
    };
  }

  const UNIT_TICKS = [0, 0.2, 0.4, 0.6, 0.8, 1];

  const unitFrame = (title, more = {}) =>
    frame({
      title,
      x: [0, 1],
      y: [0, 1],
      xTicks: UNIT_TICKS,
      yTicks: UNIT_TICKS,
      xLabel: "forecast",
      yLabel: "event rate",
      ...more,
    });

  /** The smallest of some round scales that holds a value, with four ticks. */
  function scale(value, steps = [0.02, 0.04, 0.08, 0.2, 0.4, 1]) {
    const top = steps.find((step) => value <= step) ?? steps[steps.length - 1];
    return { top, ticks: [0, 1, 2, 3, 4].map((k) => [(k * top) / 4, String(+((k * top) / 4).toFixed(4))]) };
  }

  const edge = (law, k) => (k === 0 ? 0 : k === law.forecast.length ? 1 : (law.forecast[k - 1] + law.forecast[k]) / 2);

  /** Event rates against forecasts, with the error between, and the interval where most of it collects. */
  function ratesPicture(found, title = "How often it happens") {
    const picture = unitFrame(title);
    const { forecast, rate, worst } = found;
    const diagonal = forecast.map((p) => [p, p]);
    const curve = forecast.map((p, k) => [p, rate[k]]);
    if (found.cutoff > 1e-9) picture.band("tour-worst", edge(found, worst.first), edge(found, worst.last));
    picture.area("tour-error", curve, diagonal);
    if (found.cutoff > 1e-9) {
      const inside = [worst.first, worst.last];
      picture.area("tour-error-worst", curve.slice(...inside), diagonal.slice(...inside));
    }
    picture.line("tour-compare", [[0, 0], [1, 1]]);
    picture.line("tour-curve", curve);
    return picture.drawn("Event rate against forecast; the diagonal is perfect calibration");
  }

  /** The running sum of the error, whose range is the Cutoff error. */
  function sumPicture({ curve, cutoff, worst, places }, title = "Where the error collects") {
    const low = Math.min(...curve);
    const high = Math.max(...curve);
    const { top } = scale(Math.max(-low, high), [0.01, 0.02, 0.05, 0.1, 0.25, 0.5]);
    const range = [low < -1e-9 ? -top : -0.1 * top, high > 1e-9 || low >= -1e-9 ? top : 0.1 * top];
    const ticks = [-1, -0.5, 0, 0.5, 1].map((share) => share * top).filter((value) => value >= range[0] && value <= range[1]);
    const picture = frame({
      title,
      x: [0, 1],
      y: range,
      xTicks: UNIT_TICKS,
      yTicks: ticks.map((value) => [value, String(+value.toFixed(4))]),
      xLabel: "forecast",
      yLabel: "running sum of the error",
      left: 58,
      right: 22,
    });
    if (cutoff > 1e-9) picture.band("tour-worst", places[worst.first], places[worst.last]);
    picture.line("tour-compare", [[0, 0], [1, 0]]);
    picture.line("tour-curve", curve.map((value, k) => [places[k], value]));
    if (cutoff > 1e-9) {
      const x = picture.box.right + 9;
      const [from, to] = [picture.at.y(low), picture.at.y(high)];
      picture.add(`<path class="tour-bracket" d="M${x - 4} ${from}H${x + 4}M${x} ${from}V${to}M${x - 4} ${to}H${x + 4}"/>`);
      const above = to - picture.box.top > 16;
      picture.add(
        `<text class="tour-words tour-strong" x="${x + 5}" y="${above ? to - 6 : from + 15}" text-anchor="end">` +
          `Cutoff ${number(cutoff)}</text>`,
      );
    }
    return picture.drawn("Running sum of the error over forecasts; its range is the Cutoff error");
  }

  // Bars: a name, what the measure is good for, a length, a number

  const ABOUT = {
    distance: ["Distance", "testable"],
    cutoff: ["Cutoff", "testable, actionable"],
    ece: ["ECE", "actionable"],
    gap: ["Risk gap", "testable, actionable"],
  };

  function bars(rows, steps) {
    const { top, ticks } = scale(Math.max(...rows.map((row) => row.high ?? row.value)), steps);
    const share = (value) => `${(100 * value) / top}%`;
    const lines = rows.map(({ name, note, value, low, high, kind }) => {
      const [from, to] = low === undefined ? [0, value] : [low, high];
      const text = low === undefined || number(low) === number(high) ? number(to) : `${number(low)} to ${number(high)}`;
      return (
        `<div class="tour-bar tour-bar-${kind}"><span class="tour-bar-name">${name}<small>${note}</small></span>` +
        `<span class="tour-bar-track"><span class="tour-bar-fill" style="left:${share(from)};` +
        `width:max(2px,calc(${share(to)} - ${share(from)}))"></span></span>` +
        `<span class="tour-bar-number">${text}</span></div>`
      );
    });
    const axis = ticks.map(([value, text]) => `<span style="left:${share(value)}">${text}</span>`).join("");
    return `${lines.join("")}<div class="tour-bar tour-bar-axis" aria-hidden="true"><span></span><span class="tour-bar-track">${axis}</span><span></span></div>`;
  }

  const bar = (kind, value) => ({
    kind,
    name: ABOUT[kind][0],
    note: ABOUT[kind][1],
    ...(kind === "distance" ? value : { value }),
  });

  const fourBars = (found) =>
    bars([
      bar("distance", found.distance),
      bar("cutoff", found.cutoff),
      bar("ece", found.ece),
      bar("gap", found.gap),
    ]);

  const between = ({ low, high }) =>
    number(low) === number(high) ? number(high) : `between ${number(low)} and ${number(high)}`;

  // Figures: each has sliders, perhaps buttons, a sentence, and pictures

  const shiftSlider = (more = {}) => ({
    name: "shift",
    label: "Events happen more often than forecast by",
    min: -0.2,
    max: 0.2,
    step: 0.01,
    show: (value) => inPoints(value, true),
    ...more,
  });

  const slopeSlider = {
    name: "slope",
    label: "Slope of the event rate (below 1: forecasts too extreme)",
    min: 0,
    max: 2,
    step: 0.05,
    show: (value) => value.toFixed(2),
  };

  const heightSlider = {
    name: "height",
    label: "Height of waves",
    min: 0,
    max: 0.2,
    step: 0.01,
    show: (value) => inPoints(value),
  };

  const wavesSlider = {
    name: "waves",
    label: "Number of waves",
    min: 1,
    max: 20,
    step: 1,
    show: (value) => String(value),
  };

  const thresholdSlider = (more = {}) => ({
    name: "threshold",
    label: "Act on forecasts from",
    min: 0.05,
    max: 0.95,
    step: 0.01,
    show: (value) => percent(value),
    ...more,
  });

  const midpoints = (found) => found.curve.map((_, k) => edge(found, k));

  const bend = {
    start: { shift: 0, slope: 0.7, height: 0, waves: 3 },
    sliders: [shiftSlider(), slopeSlider, heightSlider, wavesSlider],
    buttons: {
      "calibrated": { shift: 0, slope: 1, height: 0 },
      "too extreme": { shift: 0, slope: 0.7, height: 0 },
      "too low": { shift: 0.1, slope: 1, height: 0 },
      "wavy": { shift: 0, slope: 1, height: 0.1, waves: 10 },
    },
    say(settings) {
      const found = numbers.compute(settings);
      if (found.ece < 1e-9) return "These forecasts are calibrated: every error is 0, and no other line between acting and not acting saves anything.";
      const { worst } = found;
      return (
        `Forecasts between ${percent(edge(found, worst.first))} and ${percent(edge(found, worst.last))} are too ` +
        `${worst.sign > 0 ? "low" : "high"} by ${points(worst.off)} points on average, on ${percent(worst.share)} of ` +
        `cases: Cutoff is ${number(found.cutoff)}. ECE is ${number(found.ece)}, and the distance from calibration is ` +
        `${between(found.distance)}. Re-drawing the line between acting and not acting saves at most ` +
        `${number(found.gap)} per case.`
      );
    },
    draw(settings) {
      const found = numbers.compute(settings);
      return {
        panels: [ratesPicture(found), sumPicture({ ...found, places: midpoints(found) })],
        bars: fourBars(found),
      };
    },
  };

  /** A weight function above, and below it what it collects of the error. */
  function weightPicture(found, weight, title, said) {
    const picture = frame({
      title,
      width: 250,
      height: 250,
      left: 36,
      x: [0, 1],
      y: [-3.6, 1.25],
      xTicks: [0, 0.5, 1],
      yTicks: [[-1, "−1"], [0, "0"], [1, "1"], [-2.4, "0"]],
      xLabel: "forecast",
    });
    const { forecast, rate } = found;
    const base = -2.4;
    const collected = forecast.map((p, k) => [p, base + 5 * weight[k] * (rate[k] - p)]);
    const floor = forecast.map((p) => [p, base]);
    const gained = collected.map(([p, value]) => [p, Math.max(value, base)]);
    const lost = collected.map(([p, value]) => [p, Math.min(value, base)]);
    picture.area("tour-gained", gained, floor);
    picture.area("tour-lost", lost, floor);
    picture.line("tour-thin", forecast.map((p, k) => [p, base + 5 * (rate[k] - p)]));
    const steps = [];
    weight.forEach((w, k) => {
      if (k > 0 && Math.abs(w - weight[k - 1]) > 0.5) steps.push([edge(found, k), weight[k - 1]], [edge(found, k), w]);
      else steps.push([k === 0 ? 0 : k === weight.length - 1 ? 1 : forecast[k], w]);
    });
    picture.line("tour-weight", steps);
    return picture.drawn(said);
  }

  const weights = {
    start: { height: 0.15, waves: 4 },
    sliders: [heightSlider, { ...wavesSlider, max: 15 }],
    say(settings) {
      const found = numbers.compute(settings);
      if (found.ece < 1e-9) return "There is no error to collect: all three measures are 0.";
      return (
        `Smooth weights collect ${number(found.smooth)}, one interval ${number(found.cutoff)}, any weights ` +
        `${number(found.ece)}. The distance from calibration is ${between(found.distance)}.`
      );
    },
    draw(settings) {
      const found = numbers.compute(settings);
      const off = found.rate.map((value, k) => value - found.forecast[k]);
      const { first, last, sign } = found.worst;
      const interval = off.map((_, k) => (k >= first && k < last && found.cutoff > 1e-9 ? sign : 0));
      const any = off.map((value) => (Math.abs(value) < 1e-12 ? 0 : Math.sign(value)));
      return {
        panels: [
          weightPicture(found, found.smoothWeight, `Smooth weights: ${number(found.smooth)}`, "The best weights of slope at most 1"),
          weightPicture(found, interval, `One interval: ${number(found.cutoff)}`, "The best interval"),
          weightPicture(found, any, `Any weights: ${number(found.ece)}`, "The sign of the error"),
        ],
        many: true,
        bars: bars([
          bar("distance", found.distance),
          bar("cutoff", found.cutoff),
          bar("ece", found.ece),
        ]),
      };
    },
  };

  const streams = new Map();

  /** Rows of one seed and shift, and what the first n of them say for each n; kept, since they take a while. */
  function stream(seed, shift) {
    const key = `${seed} ${shift}`;
    if (!streams.has(key)) {
      if (streams.size > 8) streams.clear();
      const rows = numbers.draw({ seed, shift, rows: numbers.SIZES[numbers.SIZES.length - 1] });
      streams.set(key, numbers.SIZES.map((n) => numbers.estimate(rows, n)));
    }
    return streams.get(key);
  }

  /** Every so many places of a long curve, with its extremes. */
  function thinned({ curve, forecast }) {
    const every = Math.max(1, Math.floor(curve.length / 500));
    let [low, high] = [0, 0];
    curve.forEach((value, k) => {
      if (value < curve[low]) low = k;
      if (value > curve[high]) high = k;
    });
    const kept = Array.from(curve.keys()).filter((k) => k % every === 0 || k === low || k === high);
    return {
      curve: kept.map((k) => curve[k]),
      places: kept.map((k) => (k === 0 ? 0 : forecast[k - 1])),
      worst: { first: kept.indexOf(Math.min(low, high)), last: kept.indexOf(Math.max(low, high)) },
    };
  }

  const sample = {
    start: { rows: 1000, shift: 0, seed: 1 },
    sliders: [
      { name: "rows", label: "Rows", values: numbers.SIZES, show: count },
      shiftSlider({ min: 0 }),
    ],
    again: "Draw other rows",
    say({ rows, shift, seed }) {
      const found = stream(seed, shift).find(({ n }) => n === rows);
      const truth = numbers.drawnTruth(shift);
      return (
        `The forecaster's ECE and Cutoff are both ${number(truth)}. On ${count(rows)} rows the ECE plug-in is ` +
        `${number(found.ece)} and Cutoff is ${number(found.cutoff)}. With 95% confidence the true Cutoff is at most ` +
        `${number(found.limit)}.`
      );
    },
    draw({ rows, shift, seed }) {
      const all = stream(seed, shift);
      const found = all.find(({ n }) => n === rows);
      const truth = numbers.drawnTruth(shift);
      const picture = frame({
        title: "What rows say, the more of them",
        x: [8, 130000],
        y: [0.0015, 1.1],
        logX: true,
        logY: true,
        xTicks: [[10, "10"], [100, "100"], [1000, "1,000"], [10000, "10,000"], [100000, "100,000"]],
        yTicks: [[0.002, "0.002"], [0.01, "0.01"], [0.05, "0.05"], [0.2, "0.2"], [1, "1"]],
        xLabel: "rows",
        yLabel: "error",
        right: 26,
      });
      const series = (name, value) => {
        const pairs = all.map((one) => [one.n, Math.max(value(one), 0.0016)]);
        picture.line(name, pairs);
        pairs.forEach(([n, y]) =>
          picture.add(`<circle class="${name}-dot" cx="${picture.at.x(n)}" cy="${picture.at.y(y)}" r="${n === rows ? 5.5 : 2.5}"/>`),
        );
      };
      if (truth > 0) picture.line("tour-compare", [[8, truth], [130000, truth]]);
      series("tour-s-limit", (one) => one.limit);
      series("tour-s-ece", (one) => one.ece);
      series("tour-s-cutoff", (one) => one.cutoff);
      const last = all[all.length - 1];
      picture.words("ECE plug-in", 100000, last.ece, { anchor: "end", dy: -9, name: "tour-words tour-w-ece" });
      const below = truth > 0 ? all[6] : all[2];
      picture.words("Cutoff", below.n, below.cutoff, { anchor: "end", dy: 20, name: "tour-words tour-w-cutoff" });
      picture.words("Cutoff is at most", 1500, all[4].limit, { dy: -8, name: "tour-words tour-w-limit" });
      if (truth > 0) picture.words("truth", 9, truth, { dy: 13, name: "tour-words" });
      const title = `Where the error collects, ${count(rows)} rows`;
      return {
        panels: [
          sumPicture({ ...thinned(found), cutoff: found.cutoff }, title),
          picture.drawn("ECE plug-in, Cutoff and its 95% limit on more and more rows, both axes logarithmic"),
        ],
        bars: "",
      };
    },
  };

  const decision = {
    start: { threshold: 0.3, shift: 0, slope: 0.5 },
    sliders: [thresholdSlider(), shiftSlider(), slopeSlider],
    say({ threshold, ...settings }) {
      const found = numbers.compute(settings);
      const made = numbers.decide(found, threshold);
      const costs = `A false alarm costs ${threshold.toFixed(2)}, a missed event ${(1 - threshold).toFixed(2)}.`;
      const now = `Acting from ${percent(threshold)} loses ${number(made.loss)} per case.`;
      if (made.saving < 1e-9) return `${costs} ${now} No other line saves anything here; at the worst threshold the best one saves ${number(found.gap)}.`;
      const line =
        made.cut === found.forecast.length ? "Never acting" : made.cut === 0 ? "Always acting" : `Acting from ${+points(edge(found, made.cut))}%`;
      return (
        `${costs} ${now} ${line} instead saves ${number(made.saving)}. At the worst threshold the best ` +
        `line saves ${number(found.gap)}, and that is never more than Cutoff, ${number(found.cutoff)}.`
      );
    },
    draw({ threshold, ...settings }) {
      const found = numbers.compute(settings);
      const made = numbers.decide(found, threshold);
      const picture = unitFrame("Act or not");
      const [low, high] = [Math.min(made.first, made.cut), Math.max(made.first, made.cut)];
      const curve = found.forecast.map((p, k) => [p, found.rate[k]]);
      picture.band("tour-acts", threshold, 1);
      if (made.saving > 1e-9) {
        picture.band("tour-worst", edge(found, low), edge(found, high));
        const stretch = curve.slice(low, high);
        picture.area("tour-error-worst", stretch, stretch.map(([p]) => [p, threshold]));
      }
      picture.line("tour-compare", [[0, 0], [1, 1]]);
      picture.line("tour-curve", curve);
      picture.line("tour-limit", [[0, threshold], [1, threshold]]);
      picture.line("tour-line", [[threshold, 0], [threshold, 1]]);
      if (made.saving > 1e-9) picture.line("tour-best", [[edge(found, made.cut), 0], [edge(found, made.cut), 1]]);
      const rightward = threshold < 0.72;
      picture.words(rightward ? "act →" : "← do not act", threshold, 0.03, { anchor: rightward ? "start" : "end", dx: rightward ? 5 : -5 });
      const gaps = numbers.gapCurve(found, 100);
      const { top, ticks } = scale(found.gap, [0.004, 0.008, 0.02, 0.04, 0.08, 0.2]);
      const other = frame({
        title: "What the best line saves",
        x: [0, 1],
        y: [0, top],
        xTicks: UNIT_TICKS,
        yTicks: ticks,
        xLabel: "threshold",
        yLabel: "saved per case",
        left: 58,
      });
      const pairs = gaps.map(({ threshold: t, gap }) => [t, gap]);
      other.area("tour-error", pairs, pairs.map(([t]) => [t, 0]));
      other.line("tour-curve", pairs);
      other.line("tour-line", [[threshold, 0], [threshold, top]]);
      other.add(`<circle class="tour-dot" cx="${other.at.x(threshold)}" cy="${other.at.y(made.saving)}" r="5.5"/>`);
      return {
        panels: [
          picture.drawn("Event rate against forecast, with the threshold and the stretch that is decided wrongly"),
          other.drawn("What the best line between acting and not acting saves at each threshold"),
        ],
        bars: bars([
          { kind: "loss", name: "Loss", note: "as forecast", value: made.loss },
          { kind: "best", name: "Loss", note: "with the best line", value: made.loss - made.saving },
          bar("gap", found.gap),
          bar("cutoff", found.cutoff),
        ]),
      };
    },
  };

  const STEPS = [0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1];

  const jitter = {
    start: { step: 0.01, threshold: 0.75 },
    sliders: [
      { name: "step", label: "Forecasts move away from 75% by", values: STEPS, show: (value) => inPoints(value) },
      thresholdSlider({ min: 0.6, max: 0.9, step: 0.005, show: (value) => `${points(value)}%` }),
    ],
    say({ step, threshold }) {
      const law = numbers.jittered(step);
      const found = numbers.measure(law);
      const made = numbers.decide(law, threshold);
      const far = `The distance from calibration is ${step === 0 ? "0" : `at most ${number(found.distance.high)}`}, Cutoff ${number(found.cutoff)}, ECE ${number(found.ece)}.`;
      const lost = `Acting from ${points(threshold)}% loses ${number(made.loss)} per case.`;
      return (
        `${far} ${lost} A better line would save ${number(made.saving)}, and a rule of any shape ` +
        `${number(made.anySaving)}.`
      );
    },
    draw({ step, threshold }) {
      const law = numbers.jittered(step);
      const found = numbers.measure(law);
      const made = numbers.decide(law, threshold);
      const picture = frame({
        title: "Two forecasts, a hair apart",
        x: [0.6, 0.9],
        y: [-0.08, 1.08],
        xTicks: [0.6, 0.7, 0.8, 0.9],
        yTicks: UNIT_TICKS,
        xLabel: "forecast",
        yLabel: "event rate",
      });
      picture.band("tour-acts", threshold, 0.9);
      picture.line("tour-compare", [[0.6, 0.6], [0.9, 0.9]]);
      picture.line("tour-line", [[threshold, -0.08], [threshold, 1.08]]);
      law.forecast.forEach((p, k) => {
        const radius = 13 * Math.sqrt(law.weight[k]);
        picture.add(`<circle class="tour-dot" cx="${picture.at.x(p)}" cy="${picture.at.y(law.rate[k])}" r="${radius}"/>`);
        const aside = p <= 0.75 ? -radius - 6 : radius + 6;
        const anchor = p <= 0.75 ? "end" : "start";
        picture.words(`${percent(law.weight[k])} of cases`, p, law.rate[k], { dx: aside, dy: 4, anchor });
      });
      const small = Array.from({ length: 101 }, (_, k) => 0.001 * 10 ** (k / 50)); // dense: savings jump
      const other = frame({
        title: "The smaller the move …",
        x: [0.0009, 0.11],
        y: [0, 0.5],
        logX: true,
        xTicks: [[0.001, "0.1"], [0.01, "1"], [0.1, "10"]],
        yTicks: [0, 0.1, 0.2, 0.3, 0.4, 0.5],
        xLabel: "points away from 75%",
        yLabel: "error, or saved per case",
      });
      const laws = small.map((one) => [one, numbers.jittered(one)]);
      const series = (name, value, text, dy) => {
        const pairs = laws.map(([one, about]) => [one, value(about)]);
        other.line(name, pairs);
        if (step > 0) other.add(`<circle class="${name}-dot" cx="${other.at.x(step)}" cy="${other.at.y(value(law))}" r="5.5"/>`);
        other.words(text, 0.00105, pairs[0][1], { dy, name: `tour-words ${name.replace("tour-s-", "tour-w-")}` });
      };
      series("tour-s-ece", (about) => numbers.measure(about).ece, "ECE", -8);
      series("tour-s-cutoff", (about) => numbers.measure(about).cutoff, "Cutoff", -8);
      series("tour-s-gap", (about) => numbers.decide(about, threshold).saving, "saved by a better line", numbers.decide(laws[0][1], threshold).saving > 0.1 ? 17 : -22);
      series("tour-s-distance", (about) => numbers.measure(about).distance.high, "distance", -8);
      return {
        panels: [
          picture.drawn("Event rates of two forecasts on either side of 75%, and the threshold"),
          other.drawn("ECE, Cutoff, what a better line saves, and distance, for smaller and smaller moves"),
        ],
        bars: bars([
          bar("distance", found.distance),
          bar("cutoff", found.cutoff),
          bar("ece", found.ece),
          { kind: "loss", name: "Loss", note: "as forecast", value: made.loss },
          { kind: "best", name: "Loss", note: "with the best line", value: made.loss - made.saving },
        ]),
      };
    },
  };

  const LEVELS = [1, 2, 3, 5, 10, 20, 50, 100, 200];

  /** The relations between the measures, with both sides, and whose they are. */
  function relations({ cutoff, ece, gap, smooth, variation, distance, forecast }) {
    const root = Math.sqrt(cutoff);
    const listed = [
      ["Cutoff ≤ ECE", cutoff, ece, "paper, Prop. 2.1"],
      ["distance² / 9 ≤ Cutoff", distance.low ** 2 / 9, cutoff, "paper, Prop. 2.1"],
      ["distance ≤ 2 √Cutoff + Cutoff", distance.low, 2 * root + cutoff, "paper, in that proof"],
      ["distance ≤ ECE", distance.low, ece, "Błasiok et al. 2023"],
      ["distance² / 8 ≤ smooth", distance.low ** 2 / 8, smooth, "Błasiok et al. 2023"],
      ["smooth ≤ 2 · distance", smooth, 2 * distance.high, "Błasiok et al. 2023"],
      ["smooth ≤ 1.5 Cutoff", smooth, 1.5 * cutoff, "this project"],
      ["Cutoff ≤ error for variation 2", cutoff, variation, "paper, Prop. 2.2"],
      ["error for variation 2 ≤ 2 Cutoff", variation, 2 * cutoff, "this project; paper, Prop. 2.2: 4 Cutoff"],
      ["risk gap ≤ Cutoff", gap, cutoff, "this project; paper, Prop. 3.2: 2 Cutoff"],
      ["Cutoff ≤ √(2 · risk gap)", cutoff, Math.sqrt(2 * gap), "this project"],
    ];
    if (forecast.length > 1) {
      const apart = forecast[1] - forecast[0];
      const whose = "this project, for forecasts b apart";
      listed.push(["b/(b + 2) · ECE ≤ distance", (apart / (apart + 2)) * ece, distance.high, whose]);
    }
    return listed;
  }

  const wedge = {
    start: { shift: 0.1, levels: 200 },
    sliders: [
      shiftSlider({ min: 0.01 }),
      { name: "levels", label: "Number of different forecasts", values: LEVELS, show: String },
    ],
    say(settings) {
      const found = numbers.compute(settings);
      return (
        `With ${settings.levels === 1 ? "one forecast for everybody" : `${settings.levels} different forecasts`} Cutoff ` +
        `is ${number(found.cutoff)} and the risk gap ${number(found.gap)}. With this Cutoff no risk gap is below ` +
        `${number(found.cutoff ** 2 / 2)}, and none above ${number(found.cutoff)}.`
      );
    },
    draw(settings) {
      const found = numbers.compute(settings);
      const picture = unitFrame("The forecaster");
      picture.line("tour-compare", [[0, 0], [1, 1]]);
      const radius = found.forecast.length > 50 ? 1.4 : 3.5;
      found.forecast.forEach((p, k) =>
        picture.add(`<circle class="tour-point" cx="${picture.at.x(p)}" cy="${picture.at.y(found.rate[k])}" r="${radius}"/>`),
      );
      const other = frame({
        title: "Where the risk gap can be",
        x: [0.005, 0.5],
        y: [0.00001, 0.5],
        logX: true,
        logY: true,
        xTicks: [[0.01, "0.01"], [0.03, "0.03"], [0.1, "0.1"], [0.3, "0.3"]],
        yTicks: [[0.00001, "0.00001"], [0.0001, "0.0001"], [0.001, "0.001"], [0.01, "0.01"], [0.1, "0.1"]],
        xLabel: "Cutoff",
        yLabel: "",
        left: 62,
      });
      const places = [0.005, 0.5];
      const ceiling = places.map((value) => [value, value]);
      const ground = places.map((value) => [value, value ** 2 / 2]);
      other.area("tour-allowed", ceiling, ground);
      other.line("tour-thin-ink", ceiling);
      other.line("tour-thin-ink", ground);
      other.words("risk gap = Cutoff", 0.05, 0.05, { anchor: "end", dx: 6, dy: -14 });
      other.words("risk gap = Cutoff² / 2", 0.05, 0.00125, { anchor: "start", dx: 6, dy: 24 });
      other.line("tour-s-gap", LEVELS.map((levels) => numbers.compute({ ...settings, levels })).map((one) => [one.cutoff, one.gap]));
      other.add(`<circle class="tour-dot" cx="${other.at.x(found.cutoff)}" cy="${other.at.y(found.gap)}" r="6"/>`);
      const rows = relations(found).map(
        ([text, left, right, source]) =>
          `<tr><th scope="row">${text}</th><td>${number(left)} ≤ ${number(right)}</td><td>${source}</td></tr>`,
      );
      return {
        panels: [
          picture.drawn("Event rate at each of the different forecasts"),
          other.drawn("The risk gap lies between half the square of Cutoff and Cutoff"),
        ],
        bars:
          '<table class="tour-relations"><caption>The relations, in numbers</caption><thead><tr>' +
          `<th scope="col">relation</th><th scope="col">here</th><th scope="col">whose</th></tr></thead><tbody>${rows.join("")}</tbody></table>`,
      };
    },
  };

  const FIGURES = { bend, weights, sample, decision, jitter, wedge };

  // The page

  function element(name, attributes = {}, inside = "") {
    const made = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.innerHTML = inside;
    return made;
  }

  function build(place) {
    const name = place.dataset.tour;
    const figure = FIGURES[name];
    const settings = { ...figure.start };
    const live = element("div", { class: "tour-live" });
    const panels = element("div", { class: "tour-panels" });
    const said = element("p", { class: "tour-says", role: "status", "aria-live": "polite" });
    const barred = element("div", { class: "tour-bars" });
    const controls = element("div", { class: "tour-controls", role: "group", "aria-label": "Try it" });
    const refresh = [];

    function show() {
      const drawn = figure.draw(settings);
      panels.innerHTML = drawn.panels.join("");
      panels.classList.toggle("tour-many", Boolean(drawn.many));
      barred.innerHTML = drawn.bars;
      said.textContent = figure.say(settings);
      refresh.forEach((update) => update());
    }

    figure.sliders.forEach((slider) => {
      const id = `tour-${name}-${slider.name}`;
      const range = slider.values ? { min: 0, max: slider.values.length - 1, step: 1 } : slider;
      const row = element("div", { class: "tour-slider" });
      const input = element("input", { type: "range", id, min: range.min, max: range.max, step: range.step });
      const output = element("output", { for: id, "aria-live": "off" }); // the slider itself says its value
      row.append(element("label", { for: id }, slider.label), input, output);
      refresh.push(() => {
        const value = settings[slider.name];
        input.value = slider.values ? slider.values.indexOf(value) : value;
        input.setAttribute("aria-valuetext", slider.show(value));
        output.textContent = slider.show(value);
      });
      input.addEventListener("input", () => {
        settings[slider.name] = slider.values ? slider.values[Number(input.value)] : Number(input.value);
        show();
      });
      controls.append(row);
    });

    const pressed = element("div", { class: "tour-buttons" });
    Object.entries(figure.buttons ?? {}).forEach(([text, chosen]) => {
      const button = element("button", { type: "button" }, text);
      button.addEventListener("click", () => {
        Object.assign(settings, chosen);
        show();
      });
      pressed.append(button);
    });
    if (figure.again) {
      const button = element("button", { type: "button" }, figure.again);
      button.addEventListener("click", () => {
        settings.seed += 1;
        show();
      });
      pressed.append(button);
    }
    const reset = element("button", { type: "button" }, "start again");
    reset.addEventListener("click", () => {
      Object.assign(settings, figure.start);
      show();
    });
    pressed.append(reset);
    controls.append(pressed);

    live.append(panels, controls, said, barred);
    place.append(live);
    place.classList.add("tour-on");
    show();
  }

  numbers.say = (name, settings = {}) => FIGURES[name].say({ ...FIGURES[name].start, ...settings });
  numbers.starts = Object.fromEntries(Object.entries(FIGURES).map(([name, figure]) => [name, figure.start]));
  numbers.relations = (settings) => relations(numbers.compute(settings));

  document.querySelectorAll(".tour-figure[data-tour]").forEach(build);
})();
