// Four retry policies side by side: a burst, in which all users want a lock at once, and then a ramp.
//
//   k6 run load-tests/retry-comparison.js
//   k6 run -e PYBENCH_BASE_MS=5 -e PYBENCH_CAP_MS=200 -e PYBENCH_MAX_ATTEMPTS=10 load-tests/retry-comparison.js
//
// Each policy has a resource of its own, so that its users meet only each other. Retry-After is ignored here.

import http from 'k6/http';
import { check, sleep } from 'k6';
import exec from 'k6/execution';
import { Counter, Rate, Trend } from 'k6/metrics';
import {
  HOST, LOAD, count, errorRate, expectService, figure, isShort, limit, number, report, rounded, shown, thresholds,
  trendStats, users,
} from './lib/run.js';

const USERS = users(80, 40);
const BASE_MS = number('PYBENCH_BASE_MS', 10);
const CAP_MS = number('PYBENCH_CAP_MS', 500);
const MAX_ATTEMPTS = number('PYBENCH_MAX_ATTEMPTS', 20);
const [BURST_S, RAMP_S] = isShort ? [3, 4] : [15, 40];

const doubled = (refused) => Math.min(CAP_MS, BASE_MS * 2 ** (refused - 1));
// The first pause is a random part, so that users who were refused together do not stay in step.
const first = (refused) => (refused === 1 ? Math.random() : 1);

// The pause in ms after so many refused attempts; null gives up.
const PAUSES = {
  none: () => null,
  fixed: (refused) => BASE_MS * first(refused),
  exponential: (refused) => doubled(refused) * first(refused),
  'full-jitter': (refused) => doubled(refused) * Math.random(),
};
const POLICIES = Object.keys(PAUSES);

http.setResponseCallback(http.expectedStatuses(200, 409));

const errors = new Rate('errors');
// k6 allows letters, digits and underscores in the name of a metric.
const named = (name, policy) => `${name}_${policy.replace('-', '_')}`;
const of = (make) => Object.fromEntries(POLICIES.map((policy) => [policy, make(policy)]));
const attempts = of((policy) => new Counter(named('attempts', policy)));
const granted = of((policy) => new Trend(named('granted', policy)));
const grants = of((policy) => new Counter(named('grants', policy)));
const refusals = of((policy) => new Counter(named('refused', policy)));
const bursts = of((policy) => new Trend(named('burst', policy)));

const LIMITS = [
  errorRate(0.1),
  ...POLICIES.map((policy) => limit(named('granted', policy), '>', 0, named('grants', policy), 'count')),
];

export const options = {
  scenarios: {
    burst: { executor: 'constant-vus', vus: USERS, duration: `${BURST_S}s`, gracefulStop: '2s', tags: LOAD },
    ramp: {
      executor: 'ramping-vus',
      startTime: `${BURST_S + 2}s`,
      startVUs: Math.max(Math.floor(USERS / 10), POLICIES.length),
      stages: [{ duration: `${RAMP_S}s`, target: USERS }],
      gracefulStop: '2s',
      tags: LOAD,
    },
  },
  thresholds: thresholds(LIMITS),
  summaryTrendStats: trendStats,
};

export function setup() {
  expectService(http.get(`${HOST}/health`));
  [attempts, grants, refusals].forEach((counters) => POLICIES.forEach((policy) => counters[policy].add(0)));
}

export default function client() {
  const policy = POLICIES[exec.vu.idInTest % POLICIES.length];
  const took = acquire(policy);
  if (exec.scenario.name === 'burst' && exec.vu.iterationInScenario === 0) bursts[policy].add(took);
  sleep(0.1 + 0.2 * Math.random());
}

// From the first attempt until the lock is granted, or the user gives up: the time in ms.
function acquire(policy) {
  const start = Date.now();
  let status;
  for (let refused = 1; refused <= MAX_ATTEMPTS; refused += 1) {
    status = attempt(policy);
    const pause = PAUSES[policy](refused);
    if (status !== 409 || pause === null || refused === MAX_ATTEMPTS) break;
    sleep(pause / 1000);
  }
  const took = Date.now() - start;
  if (status === 200) {
    granted[policy].add(took);
    grants[policy].add(1);
  } else if (status === 409) {
    refusals[policy].add(1);
  }
  return took;
}

function attempt(policy) {
  attempts[policy].add(1);
  const { status } = http.post(`${HOST}/api/locks/simple/retry-${policy}`);
  errors.add(!check(status, { 'lock is answered': (code) => code === 200 || code === 409 }));
  return status;
}

export function handleSummary(data) {
  const groups = of((policy) => figuresOf(data, policy));
  return report(data, {
    scenario: 'retry_comparison',
    settings: { users: USERS, base_ms: BASE_MS, cap_ms: CAP_MS, max_attempts: MAX_ATTEMPTS },
    limits: LIMITS,
    conclusion: sentence(groups),
    metrics: Object.fromEntries(POLICIES.map((policy) => [named('granted', policy), groups[policy].granted])),
    groups,
  });
}

function figuresOf(data, policy) {
  const requests = count(data, named('attempts', policy));
  const got = count(data, named('grants', policy));
  const gaveUp = count(data, named('refused', policy));
  return {
    requests,
    granted: got,
    refused: gaveUp,
    granted_share: got + gaveUp ? rounded(got / (got + gaveUp), 4) : null,
    attempts_per_grant: got ? rounded(requests / got, 2) : null,
    p50_ms: figure(data, named('granted', policy), 'med'),
    p99_ms: rounded(figure(data, named('granted', policy), 'p(99)'), 1),
    burst_ms: figure(data, named('burst', policy), 'max'),
  };
}

// Which policy cost least, of those that granted most.
function sentence(groups) {
  const granting = POLICIES.filter((policy) => groups[policy].granted > 0);
  if (!granting.length) return 'No policy was granted a lock.';
  const most = Math.max(...granting.map((policy) => groups[policy].granted_share));
  const best = granting.filter((policy) => groups[policy].granted_share === most);
  const least = (name) => best.reduce((a, b) => (groups[b][name] < groups[a][name] ? b : a));
  const [cheapest, quickest] = [least('attempts_per_grant'), least('p99_ms')];
  return `${best.join(', ')} granted most (${(100 * most).toFixed(1)} % of the acquires). Of these, ${cheapest} took`
    + ` the fewest attempts per grant (${shown(groups[cheapest].attempts_per_grant)}), and ${quickest} had the lowest`
    + ` p99 (${shown(groups[quickest].p99_ms)} ms). Small differences in one run may be chance.`;
}
