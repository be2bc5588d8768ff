/* The numbers of the tour: exact for a population of finitely many forecasts, each with a true event rate.
 *
 * They are the formulas of docs/theory/measures.md and docs/theory/savings.md; tests/docs/test_tour.py compares every one
 * with the Python library. Nothing here touches the page.
 */
(function () {
  "use strict";

  const LEVELS = 200;
  const DELTA = 0.05;
  const SIZES = [10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000];

  const clip = (value) => Math.min(1, Math.max(0, value));

  /** Forecasts spread evenly over [0, 1], and how often the event happens at each: shifted, tilted and made wavy. */
  function population({ shift = 0, slope = 1, height = 0, waves = 1, levels = LEVELS } = {}) {
    const forecast = Array.from({ length: levels }, (_, k) => (k + 0.5) / levels);
    const rate = forecast.map((p) =>
      clip(0.5 + slope * (p - 0.5) + shift + height * Math.sin(2 * Math.PI * waves * p)),
    );
    return { forecast, rate, weight: forecast.map(() => 1 / levels) };
  }

  /** The paper's example 3.1: three cases in four are events, and forecasts hint at which, the wrong way round. */
  function jittered(step) {
    if (step === 0) return { forecast: [0.75], rate: [0.75], weight: [1] };
    return { forecast: [0.75 - step, 0.75 + step], rate: [1, 0], weight: [0.75, 0.25] };
  }

  function prefixSums(values) {
    const sums = new Float64Array(values.length + 1);
    values.forEach((value, k) => (sums[k + 1] = sums[k] + value));
    return sums;
  }

  function residuals({ forecast, rate, weight }) {
    return forecast.map((p, k) => weight[k] * (rate[k] - p));
  }

  /** The interval on which most error collects: where the running sum goes from one extreme to the other.
   *
   * Of several the library's: it ends where both extremes have first occurred, up to rounding, and starts at the last
   * place of the other one before.
   */
  function worstInterval(law) {
    const sums = prefixSums(residuals(law));
    const [low, high] = [Math.min(...sums), Math.max(...sums)];
    const seen = { low: -1, high: -1 };
    let last = 0;
    for (; last < sums.length - 1; last += 1) {
      if (sums[last] <= low + 5e-13) seen.low = last;
      if (sums[last] >= high - 5e-13) seen.high = last;
      if (seen.low >= 0 && seen.high >= 0) break;
    }
    const sign = sums[last] >= high - 5e-13 ? 1 : -1;
    const first = Math.max(sign > 0 ? seen.low : seen.high, 0);
    let share = 0;
    for (let k = first; k < last; k += 1) share += law.weight[k];
    const error = high - low;
    return { error, first, last, share, sign, off: share > 0 ? error / share : 0 };
  }

  /** The smooth error and the 1-Lipschitz weights that attain it: an L1 isotonic fit of the running sum. */
  function smooth({ forecast, rate, weight }) {
    const sums = Array.from(prefixSums(residuals({ forecast, rate, weight })).slice(1));
    const sign = sums[sums.length - 1] >= -1e-12 ? 1 : -1; // what rounding leaves of no bias has no sign
    const curve = sums.map((value) => sign * value);
    const gap = forecast.slice(1).map((p, k) => p - forecast[k]);
    const end = Math.max(curve[curve.length - 1], 0);
    const kinks = [{ value: 0, mass: Infinity }]; // slope changes of the cost so far, by rising value
    const fit = [];
    let cost = end;
    gap.forEach((width, k) => {
      const value = Math.min(Math.max(curve[k], 0), end);
      cost += width * Math.abs(curve[k] - value);
      let own = 2 * width;
      let remaining = width;
      while (remaining > 0) {
        const top = kinks[kinks.length - 1];
        if (top.value <= value) {
          own -= remaining;
          break;
        }
        const taken = Math.min(top.mass, remaining);
        cost += taken * (top.value - value);
        remaining -= taken;
        top.mass -= taken;
        if (top.mass === 0) kinks.pop();
      }
      let place = kinks.length;
      while (place > 0 && kinks[place - 1].value > value) place -= 1;
      kinks.splice(place, 0, { value, mass: own });
      fit.push(kinks[kinks.length - 1].value);
    });
    for (let k = fit.length - 2; k >= 0; k -= 1) fit[k] = Math.min(fit[k], fit[k + 1]);
    return { value: cost, weight: smoothWeights(curve, gap, fit).map((w) => sign * w) };
  }

  /** Weights from the fit, by complementary slackness: forward what 1 - w may be, backward a choice. */
  function smoothWeights(curve, gap, fit) {
    const points = curve.length;
    const low = [];
    const high = [];
    let before = 0;
    for (let k = 0; k < points; k += 1) {
      if (k === 0) {
        low.push(0);
        high.push(2);
      } else {
        const difference = curve[k - 1] - fit[k - 1];
        const top = high[k - 1] + (difference >= 0 ? gap[k - 1] : -gap[k - 1]);
        low.push(Math.max(low[k - 1] + (difference <= 0 ? -gap[k - 1] : gap[k - 1]), 0));
        high.push(Math.max(top, low[k]));
      }
      const here = k < points - 1 ? fit[k] : curve[points - 1];
      if (here > before) low[k] = high[k] = 0;
      before = here;
    }
    const weights = new Array(points);
    let chosen = low[points - 1];
    weights[points - 1] = 1 - chosen;
    for (let k = points - 2; k >= 0; k -= 1) {
      const difference = curve[k] - fit[k];
      if (difference > 0) chosen -= gap[k];
      else if (difference < 0) chosen += gap[k];
      else if (chosen > high[k]) chosen = Math.max(chosen - gap[k], high[k]);
      else if (chosen < low[k]) chosen = Math.min(chosen + gap[k], low[k]);
      chosen = Math.min(Math.max(chosen, low[k]), high[k]);
      weights[k] = 1 - chosen;
    }
    return weights;
  }

  /** The largest error against weights of total variation 2: the concave hull, over +-1 weights, of their sign changes. */
  function boundedVariation(law) {
    const off = residuals(law);
    const most = 100;
    let plus = new Float64Array(most).fill(-Infinity);
    let minus = plus.slice();
    plus[0] = minus[0] = 0;
    off.forEach((value) => {
      const [before, after] = [plus, minus];
      plus = before.map((sum, n) => Math.max(sum, n > 0 ? after[n - 1] : -Infinity) + value);
      minus = after.map((sum, n) => Math.max(sum, n > 0 ? before[n - 1] : -Infinity) - value);
    });
    const best = plus.map((sum, n) => Math.max(sum, minus[n]));
    return best.reduce((hull, value, n) => (n === 0 ? hull : Math.max(hull, best[0] + (value - best[0]) / n)), best[0]);
  }

  /** Mean distance of forecasts from the best non-decreasing curve of event rates. */
  function isotonicDistance({ forecast, rate, weight }) {
    const blocks = [];
    rate.forEach((value, k) => {
      let block = { sum: weight[k] * value, weight: weight[k], first: k };
      while (blocks.length > 0) {
        const last = blocks[blocks.length - 1];
        if (last.sum / last.weight < block.sum / block.weight) break;
        block = { sum: last.sum + block.sum, weight: last.weight + block.weight, first: last.first };
        blocks.pop();
      }
      blocks.push(block);
    });
    return blocks.reduce((total, block, b) => {
      const next = b + 1 < blocks.length ? blocks[b + 1].first : forecast.length;
      for (let k = block.first; k < next; k += 1) total += weight[k] * Math.abs(block.sum / block.weight - forecast[k]);
      return total;
    }, 0);
  }

  /** Smallest mean distance of forecasts from the event rate of their cell, over all partitions into intervals. */
  function nearestPartition({ forecast, rate, weight }) {
    const events = prefixSums(rate.map((value, k) => weight[k] * value));
    const rows = prefixSums(weight);
    const mass = prefixSums(forecast.map((p, k) => weight[k] * p));
    const size = forecast.length;
    const best = new Float64Array(size + 1).fill(Infinity);
    best[0] = 0;
    for (let last = 1; last <= size; last += 1) {
      for (let first = 0; first < last; first += 1) {
        const mean = (events[last] - events[first]) / (rows[last] - rows[first]);
        let [turn, end] = [first, last]; // the first forecast at or above the mean
        while (turn < end) {
          const middle = (turn + end) >> 1;
          if (forecast[middle] < mean) turn = middle + 1;
          else end = middle;
        }
        const below = mean * (rows[turn] - rows[first]) - (mass[turn] - mass[first]);
        const above = mass[last] - mass[turn] - mean * (rows[last] - rows[turn]);
        best[last] = Math.min(best[last], best[first] + Math.max(below + above, 0));
      }
    }
    return best[size];
  }

  /** Between what and what the distance from calibration lies: forecasts and rates alone do not say more. */
  function distance(law, { smoothError, cutoff, ece, bias }) {
    let spacing = 1;
    if (law.forecast.length > 1) {
      const gap = Math.min(...law.forecast.slice(1).map((p, k) => p - law.forecast[k]));
      spacing = gap / (gap + 2);
    }
    const low = Math.max(Math.abs(bias), (2 * smoothError - Math.abs(bias)) / 3, spacing * ece);
    const high = Math.min(
      nearestPartition(law),
      isotonicDistance(law),
      ece,
      Math.sqrt(8 * smoothError),
      2 * Math.sqrt(cutoff) + cutoff,
    );
    return { low: Math.min(low, high), high };
  }

  /** The most that re-drawing the line saves, and the threshold of that; just above it where more cases are acted on. */
  function largestGap({ forecast, rate, weight }) {
    let best = { gap: 0, threshold: 0 };
    for (let k = 0; k < forecast.length; k += 1) {
      const threshold = forecast[k];
      let saved = 0;
      for (let i = k; i >= 0; i -= 1) {
        saved += weight[i] * (rate[i] - threshold);
        if (saved > best.gap) best = { gap: saved, threshold };
      }
      saved = 0;
      for (let i = k; i < forecast.length; i += 1) {
        saved += weight[i] * (threshold - rate[i]);
        if (saved > best.gap) best = { gap: saved, threshold };
      }
    }
    return best;
  }

  /** What acting on forecasts at or above a threshold loses per case, and what better uses of them would save. */
  function decide({ forecast, rate, weight }, threshold) {
    const gain = forecast.map((_, k) => weight[k] * (rate[k] - threshold));
    let first = forecast.findIndex((p) => p >= threshold);
    if (first < 0) first = forecast.length;
    let loss = 0;
    let anySaving = 0;
    let acted = 0;
    gain.forEach((value, k) => {
      const acts = k >= first;
      acted += acts ? weight[k] : 0;
      loss += weight[k] * (acts ? threshold * (1 - rate[k]) : (1 - threshold) * rate[k]);
      if (acts ? value < 0 : value > 0) anySaving += Math.abs(value);
    });
    const forgone = prefixSums(gain);
    let cut = first;
    let saving = 0;
    for (let k = 0; k < forgone.length; k += 1) {
      const saved = forgone[first] - forgone[k];
      const nearer = Math.abs(k - first) < Math.abs(cut - first);
      if (saved > saving + 1e-12 || (saving > 0 && saved > saving - 1e-12 && nearer)) [saving, cut] = [saved, k];
    }
    return { loss, saving, anySaving, acted, first, cut };
  }

  /** What the best line saves at each of many thresholds. */
  function gapCurve(law, steps = 200) {
    return Array.from({ length: steps + 1 }, (_, k) => ({ threshold: k / steps, gap: decide(law, k / steps).saving }));
  }

  /** Every measure of a population. */
  function measure(law) {
    const off = residuals(law);
    const ece = off.reduce((total, value) => total + Math.abs(value), 0);
    const bias = off.reduce((total, value) => total + value, 0);
    const worst = worstInterval(law);
    const fitted = smooth(law);
    const { gap, threshold } = largestGap(law);
    return {
      ...law,
      ece,
      bias,
      cutoff: worst.error,
      worst,
      smooth: fitted.value,
      variation: boundedVariation(law),
      smoothWeight: fitted.weight,
      distance: distance(law, { smoothError: fitted.value, cutoff: worst.error, ece, bias }),
      gap,
      gapThreshold: threshold,
      curve: Array.from(prefixSums(off)),
    };
  }

  /** Numbers between 0 and 1 that a seed repeats: mulberry32, two draws for one number of 53 bits. */
  function random(seed) {
    let state = seed >>> 0;
    const word = () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return (mixed ^ (mixed >>> 14)) >>> 0;
    };
    return () => ((word() >>> 5) * 67108864 + (word() >>> 6)) / 9007199254740992;
  }

  /** Rows drawn one after the other: a forecast spread evenly over [0, 1], an event more often than it says. */
  function draw({ seed = 1, rows = 1000, shift = 0 } = {}) {
    const next = random(seed);
    const forecast = new Float64Array(rows);
    const outcome = new Uint8Array(rows);
    for (let k = 0; k < rows; k += 1) {
      forecast[k] = next();
      outcome[k] = next() < clip(forecast[k] + shift) ? 1 : 0;
    }
    return { forecast, outcome };
  }

  /** What the first n rows say: both plug-in errors, and with 95% confidence what the Cutoff error is at most. */
  function estimate({ forecast, outcome }, n) {
    const order = Array.from({ length: n }, (_, k) => k).sort((a, b) => forecast[a] - forecast[b]);
    const curve = new Float64Array(n + 1);
    let ece = 0;
    for (let k = 0; k < n; ) {
      let sum = 0;
      const value = forecast[order[k]];
      const start = k;
      for (; k < n && forecast[order[k]] === value; k += 1) sum += outcome[order[k]] - value;
      ece += Math.abs(sum) / n;
      for (let i = start + 1; i <= k; i += 1) curve[i] = curve[start] + sum / n;
    }
    let [low, high] = [0, 0];
    curve.forEach((value) => {
      low = Math.min(low, value);
      high = Math.max(high, value);
    });
    const cutoff = high - low;
    const log = Math.log(1 / DELTA);
    return {
      n,
      ece,
      cutoff,
      limit: Math.min(1, cutoff + Math.sqrt((2 * log) / n)),
      paperLimit: Math.min(1, cutoff + (20 + Math.sqrt(2 * log)) / Math.sqrt(n)),
      forecast: Float64Array.from(order, (k) => forecast[k]),
      curve,
    };
  }

  /** The truth about drawn rows: both errors of forecasts spread evenly, with rates shifted and kept within [0, 1]. */
  function drawnTruth(shift) {
    const size = Math.abs(shift);
    return size - (size * size) / 2;
  }

  window.calibrantTour = {
    LEVELS,
    SIZES,
    compute: (settings) => measure(population(settings)),
    population,
    jittered,
    measure,
    decide,
    gapCurve,
    draw,
    estimate,
    drawnTruth,
  };
})();
