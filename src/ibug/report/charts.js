// The charts of the upper part. Each is drawn when it comes near the screen, and again when the theme changes.
const LEVEL = `${Number((100 * DATA.coverage).toPrecision(6))} %`;

const CHARTS = {
  calibration(place) {
    const { expected, ibug, plain, low, high } = DATA.charts.calibration;
    const line = { width: 0 };
    const traces = [
      { x: expected, y: low, mode: "lines", line, hoverinfo: "skip", showlegend: false },
      { x: expected, y: high, mode: "lines", line, fill: "tonexty", fillcolor: color("chance"), hoverinfo: "skip", name: "chance, 95 %" },
      { x: [0, 1], y: [0, 1], mode: "lines", line: { color: color("quiet"), width: 1 }, hoverinfo: "skip", name: "ideal" },
    ];
    const hovertemplate = "%{y:.1%} are inside the %{x:.0%} intervals<extra></extra>";
    if (plain) traces.push({ x: expected, y: plain, mode: "lines", name: "plain neighbours", hovertemplate, line: { color: color("plain"), width: 2, dash: "dash" } });
    traces.push({ x: expected, y: ibug, mode: "lines", name: plain ? "ibug" : "observed", hovertemplate, line: { color: color("accent"), width: 3 } });
    const share = { range: [0, 1], tickformat: ".0%", dtick: 0.25 };
    return Plotly.react(place, traces, layout({
      xaxis: { ...share, title: { text: "Coverage promised" } }, yaxis: { ...share, title: { text: "Coverage observed" } },
    }), CONFIG);
  },

  pit(place) {
    const { ibug, plain, low, high } = DATA.charts.pit;
    const n = ibug.length;
    const middle = ibug.map((_, i) => (i + 0.5) / n);
    const hovertemplate = "%{y:.2f} times as many as expected<extra></extra>";
    const traces = [{ type: "bar", x: middle, y: ibug, width: 1 / n, name: plain ? "ibug" : "observed", hovertemplate, marker: { color: color("band"), line: { color: color("accent"), width: 1 } } }];
    if (plain) {
      // Steps from edge to edge of the bars.
      const edges = Array.from({ length: n + 1 }, (_, i) => i / n);
      traces.push({ x: edges, y: [...plain, plain[n - 1]], mode: "lines", name: "plain neighbours", line: { shape: "hv", color: color("plain"), width: 2, dash: "dash" }, hoverinfo: "skip" });
    }
    return Plotly.react(place, traces, layout({
      bargap: 0, xaxis: { range: [0, 1], title: { text: "Probability given to lower values" } },
      yaxis: { rangemode: "tozero", title: { text: "Rows, 1 = as expected" } },
      shapes: [
        { type: "rect", xref: "paper", x0: 0, x1: 1, y0: low, y1: high, fillcolor: color("chance"), line: { width: 0 } },
        { type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1, line: { color: color("quiet"), width: 1.5 } },
      ],
    }), CONFIG);
  },

  intervals(place) {
    const order = Array.from(unpack(DATA.charts.intervals.order));
    const at = order.map((_, place) => place + 1);
    const finite = (values) => order.map((i) => (Number.isFinite(values[i]) ? values[i] : null));
    const points = (inside, name, marker) => {
      const chosen = order.map((i, place) => [i, place + 1]).filter(([i]) => ROWS.inside[i] === inside);
      return {
        x: chosen.map(([, place]) => place), y: chosen.map(([i]) => ROWS.observed[i]), customdata: chosen.map(([i]) => i), mode: "markers",
        name, marker, text: chosen.map(([i]) => `${label(ROWS.name(i))}: ${number(ROWS.observed[i])}, interval ${number(ROWS.lower[i])} … ${number(ROWS.upper[i])}`),
        hovertemplate: "%{text}<extra></extra>",
      };
    };
    const many = ROWS.n > 600;
    const traces = [
      { x: at, y: finite(ROWS.lower), mode: "lines", line: { width: 0, shape: "hvh" }, hoverinfo: "skip", showlegend: false },
      { x: at, y: finite(ROWS.upper), mode: "lines", line: { width: 0, shape: "hvh" }, fill: "tonexty", fillcolor: color("band"), hoverinfo: "skip", name: `${LEVEL} interval` },
      { x: at, y: finite(ROWS.prediction), mode: "lines", line: { color: color("accent"), width: 2 }, hoverinfo: "skip", name: "prediction" },
      points(true, "observed, inside", { color: color("text"), size: many ? 3 : 4.5, opacity: many ? 0.5 : 0.8 }),
      points(false, "observed, outside", { color: color("bad-mark"), size: many ? 6 : 8, symbol: "x" }),
    ];
    return Plotly.react(place, traces, layout({
      xaxis: { title: { text: "Rows, sorted by prediction" }, range: [0, ROWS.n + 1] }, yaxis: { title: { text: label(DATA.about.target) } },
    }), CONFIG).then(() => clickable(place));
  },

  spread(place) {
    const { std, rmse } = DATA.charts.spread;
    const usable = [...ROWS.std.keys()].filter((i) => Number.isFinite(ROWS.std[i]));
    const logarithmic = usable.every((i) => ROWS.std[i] > 0) && rmse.every((value) => value > 0);
    const middle = usable.map((i) => ROWS.error[i]).sort((a, b) => a - b)[usable.length >> 1] || 0;
    // On a log scale an error of nearly zero, which comes by chance, would take most of the chart.
    const floor = logarithmic ? middle / 100 : 0;
    const ends = usable.length ? [Math.min(...usable.map((i) => ROWS.std[i])), Math.max(...usable.map((i) => ROWS.std[i]))] : [];
    const traces = [
      {
        x: usable.map((i) => ROWS.std[i]), y: usable.map((i) => Math.max(ROWS.error[i], floor)), customdata: usable, mode: "markers", name: "row",
        marker: { color: color("accent"), size: 4, opacity: 0.4 },
        text: usable.map((i) => `${label(ROWS.name(i))}: σ ${number(ROWS.std[i])}, error ${number(ROWS.error[i])}`), hovertemplate: "%{text}<extra></extra>",
      },
      { x: ends, y: ends, mode: "lines", name: "ideal", line: { color: color("quiet"), width: 1.5, dash: "dot" }, hoverinfo: "skip" },
      {
        x: std, y: rmse, mode: "lines+markers", name: "rows of similar σ, RMSE", line: { color: color("bad-mark"), width: 2 },
        marker: { symbol: "diamond", size: 9, color: color("bad-mark"), line: { color: color("card"), width: 1 } },
        hovertemplate: "σ %{x:.4g}, RMSE %{y:.4g}<extra></extra>",
      },
    ];
    // Ticks at 1, 2 and 5 of each decade, or at 1 alone where there are many, each with its whole number.
    const axis = (values) => {
      if (!logarithmic) return { rangemode: "tozero" };
      const low = Math.log10(Math.min(...values)), high = Math.log10(Math.max(...values));
      const tickvals = [];
      for (let decade = Math.floor(low); decade <= high; decade++) {
        for (const digit of high - low > 2.3 ? [1] : [1, 2, 5]) tickvals.push(Number(`${digit}e${decade}`));
      }
      return { type: "log", tickvals, ticktext: tickvals.map((value) => (value >= 1e6 || value < 1e-4 ? value.toExponential() : value.toLocaleString("en-US", { maximumSignificantDigits: 3 }))) };
    };
    return Plotly.react(place, traces, layout({
      xaxis: { ...axis(traces[0].x), title: { text: "Predicted standard deviation σ" } }, yaxis: { ...axis(traces[0].y), title: { text: "Error that was made" } },
    }), CONFIG).then(() => clickable(place));
  },

  "totals-chart"(place) {
    if (!DATA.totals) return null;
    const traces = [];
    let low = Infinity, high = -Infinity;
    DATA.totals.kinds.forEach(({ name, groups, observed, median, lower, upper, inside }, kind) => {
      const shade = color(["accent", "plain", "good", "text"][kind % 4]);
      for (const held of [true, false]) {
        const at = [...observed.keys()].filter((i) => inside[i] === held);
        const finite = (ends) => at.map((i) => (ends[i] === null ? 0 : Math.abs(ends[i] - median[i])));
        traces.push({
          x: at.map((i) => observed[i]), y: at.map((i) => median[i]), mode: "markers", name: `${label(name)}, ${held ? "inside" : "outside"}`,
          marker: held ? { color: shade, size: 5 } : { color: color("bad-mark"), size: 8, symbol: "x" },
          error_y: { type: "data", symmetric: false, array: finite(upper), arrayminus: finite(lower), color: held ? shade : color("bad-mark"), thickness: 1, width: 0 },
          text: at.map((i) => `${label(groups[i])}: ${number(observed[i])}, interval ${number(lower[i])} … ${number(upper[i])}`), hovertemplate: "%{text}<extra></extra>",
        });
      }
      for (const value of [...observed, ...median]) [low, high] = [Math.min(low, value), Math.max(high, value)];
    });
    traces.push({ x: [low, high], y: [low, high], mode: "lines", name: "ideal", line: { color: color("quiet"), width: 1.5, dash: "dot" }, hoverinfo: "skip" });
    return Plotly.react(place, traces, layout({
      xaxis: { title: { text: "Observed total" } }, yaxis: { title: { text: "Predicted total" } },
    }), CONFIG);
  },

  tuning(place) {
    const found = DATA.charts.tuning;
    place.classList.toggle("none", !found.curves);
    if (!found.curves) {
      Plotly.purge(place);
      return null;
    }
    const styles = ["accent", "plain", "text", "bad-mark", "good", "quiet"];
    const dashes = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
    // Where there are many curves, the best have names, and the others are one entry of the legend.
    const others = found.curves.filter((curve) => !curve.named);
    const traces = [...others.map((curve, i) => ({
      x: curve.k, y: curve.score, mode: "lines", name: `${others.length} others`, legendgroup: "others", showlegend: i === 0,
      line: { color: color("quiet"), width: 1 }, opacity: 0.5, hovertemplate: `${label(curve.name)}, k = %{x}: %{y:.5g}<extra></extra>`,
    })), ...found.curves.filter((curve) => curve.named).map((curve, i) => ({
      x: curve.k, y: curve.score, mode: "lines+markers", name: label(curve.name), line: { color: color(styles[i % 6]), dash: dashes[i % 6], width: 2 },
      hovertemplate: `${label(curve.name)}, k = %{x}: %{y:.5g}<extra></extra>`,
    }))];
    return Plotly.react(place, traces, layout({
      xaxis: { type: "log", title: { text: "Number of neighbours k" }, tickvals: [3, 5, 10, 20, 50, 100, 200, 500] },
      yaxis: { title: { text: `${label(found.scoring)}, uncalibrated` } }, showlegend: traces.length > 1,
      shapes: [{ type: "line", yref: "paper", y0: 0, y1: 1, x0: found.chosen, x1: found.chosen, line: { color: color("bad-mark"), width: 1.5, dash: "dash" } }],
    }), CONFIG);
  },
};

// A click on a point opens its row in the explorer.
function clickable(place) {
  place.removeAllListeners("plotly_click");
  place.on("plotly_click", (event) => {
    const chosen = event.points.find((point) => point.customdata !== undefined);
    if (chosen === undefined) return;
    TABLE.reveal(chosen.customdata);
    $("explorer").scrollIntoView();
  });
}

const drawn = new Set();

function drawChart(name) {
  drawn.add(name);
  CHARTS[name]($(name).querySelector(".plot"));
}

function watchCharts() {
  const watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      drawChart(target.id);
    }
  }, { rootMargin: "400px" });
  for (const name of Object.keys(CHARTS)) watcher.observe($(name));
  addEventListener("beforeprint", () => Object.keys(CHARTS).filter((name) => !drawn.has(name)).forEach(drawChart));
}
