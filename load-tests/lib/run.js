// What the k6 scripts share: settings from the environment, thresholds, and the summary.
//
// The locustfiles under `locustfiles/` write the same summary with the same names; docs/http-load.md describes it.

export const HOST = (__ENV.BASE_URL || 'http://127.0.0.1:8080').replace(/\/+$/, '');

const FORM = __ENV.PYBENCH_LOAD || 'full';
if (FORM !== 'full' && FORM !== 'short') {
  throw new Error(`PYBENCH_LOAD is '${FORM}': use full or short`);
}
export const isShort = FORM === 'short';

// A number from the environment, or its default.
export function number(name, standard) {
  const text = __ENV[name];
  if (text === undefined || text === '') return standard;
  if (Number.isNaN(Number(text))) throw new Error(`${name} is '${text}': use a number`);
  return Number(text);
}

export const users = (full, short) => number('PYBENCH_USERS', isShort ? short : full);

// Requests of setup and teardown do not carry this tag, and are not part of any figure.
export const LOAD = { kind: 'load' };
export const DURATIONS = 'http_req_duration{kind:load}';
const REQUESTS = 'http_reqs{kind:load}';
const ERRORS = 'errors';

export const trendStats = ['med', 'p(95)', 'p(99)', 'max'];

// A threshold of the summary beside the k6 metric and condition that decide it.
export function limit(metric, relation, bound, k6Metric, aggregate) {
  return { metric, relation, bound, k6Metric, condition: `${aggregate}${relation}${bound}` };
}

export const errorRate = (bound) => limit('error_rate', '<', bound, ERRORS, 'rate');
export const quantile = (percent, bound) => limit(`p${percent}_ms`, '<', bound, DURATIONS, `p(${percent})`);

// The thresholds as k6 wants them. A tagged metric is in the summary only if it has a threshold.
export function thresholds(limits) {
  const all = { [DURATIONS]: ['max>=0'], [REQUESTS]: ['count>=0'] };
  for (const { k6Metric, condition } of limits) {
    all[k6Metric] = [...(all[k6Metric] || []), condition];
  }
  return all;
}

// Ends the run where the service is not there: k6 exits with 107.
export function expectService(answer) {
  if (answer.status !== 200) {
    const what = answer.status ? `answers with ${answer.status}: ${answer.body}` : 'does not answer';
    throw new Error(`${address()} ${what}: start it with pybench serve, or name another service with BASE_URL`);
  }
  return answer;
}

// A figure of a metric; null where nothing was measured.
export function figure(data, metric, value) {
  const found = data.metrics[metric];
  return found === undefined || found.values[value] === undefined ? null : found.values[value];
}

export const count = (data, metric) => figure(data, metric, 'count') || 0;

// The files of handleSummary: a table on the terminal, and JSON where PYBENCH_SUMMARY says so.
export function report(data, { scenario, settings, limits, conclusion, metrics = {}, groups = {} }) {
  const all = { ...requestMetrics(data), ...metrics };
  const judged = limits.map((one) => ({
    metric: one.metric,
    limit: `${one.relation} ${one.bound}`,
    figure: all[one.metric] === undefined ? null : all[one.metric],
    passed: data.metrics[one.k6Metric] !== undefined && data.metrics[one.k6Metric].thresholds[one.condition].ok,
  }));
  const summary = {
    schema: 1,
    tool: 'k6',
    scenario,
    form: FORM,
    service: address(),
    settings,
    passed: all.requests > 0 && judged.every((one) => one.passed),
    conclusion: all.requests > 0 ? conclusion : 'No request was answered: nothing was measured.',
    metrics: all,
    groups,
    thresholds: judged,
  };
  const files = { stdout: `\n${text(summary)}\n\n` };
  if (__ENV.PYBENCH_SUMMARY) files[__ENV.PYBENCH_SUMMARY] = `${JSON.stringify(summary, null, 2)}\n`;
  return files;
}

function address() {
  return HOST.replace(/^(\w+:\/\/)[^/]*@/, '$1');
}

function requestMetrics(data) {
  const requests = count(data, REQUESTS);
  const seconds = data.state.testRunDurationMs / 1000;
  const time = (value) => (requests ? rounded(figure(data, DURATIONS, value), 1) : null);
  return {
    requests,
    errors: figure(data, ERRORS, 'passes') || 0,
    requests_per_s: requests ? rounded(requests / seconds, 2) : null,
    error_rate: requests ? figure(data, ERRORS, 'rate') : null,
    p50_ms: time('med'),
    p95_ms: time('p(95)'),
    p99_ms: time('p(99)'),
    max_ms: time('max'),
  };
}

export function rounded(value, digits) {
  return value === null ? null : Math.round(value * 10 ** digits) / 10 ** digits;
}

export function shown(value) {
  if (value === null) return 'n/a';
  if (Number.isInteger(value)) return String(value);
  return value < 1 ? value.toPrecision(3) : value.toFixed(1);
}

function text(summary) {
  const settings = Object.entries(summary.settings).map(([name, value]) => `${name} ${value}`).join(', ');
  const lines = [`${summary.scenario} (${summary.form} form) on ${summary.service}: ${settings}`, summary.conclusion];
  if (!summary.metrics.requests) return [...lines, 'failed: the run could not be judged'].join('\n');
  lines.push('', ...aligned([['metric', 'figure'], ...Object.entries(summary.metrics).map(([n, v]) => [n, shown(v)])]));
  const groups = Object.entries(summary.groups);
  if (groups.length) {
    const rows = groups.map(([group, metrics]) => [group, ...Object.values(metrics).map(shown)]);
    lines.push('', ...aligned([['', ...Object.keys(groups[0][1])], ...rows]));
  }
  const rows = summary.thresholds.map((one) => [
    `${one.metric} ${one.limit}`, shown(one.figure), one.passed ? 'pass' : 'FAIL',
  ]);
  const missed = summary.thresholds.filter((one) => !one.passed).length;
  lines.push('', ...aligned([['threshold', 'figure', ''], ...rows]), '');
  lines.push(missed ? `failed: ${missed} of ${summary.thresholds.length} thresholds missed` : 'passed');
  return lines.join('\n');
}

function aligned(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const cell = (value, column) => (column ? value.padStart(widths[column]) : value.padEnd(widths[column]));
  return rows.map((row) => `  ${row.map(cell).join('  ')}`);
}
