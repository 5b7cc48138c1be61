// The lock routes: users take the locks of a few resources with `simple` and with `redlock`.
//
//   k6 run load-tests/lock-api.js
//   k6 run -e PYBENCH_RESOURCES=5 load-tests/lock-api.js
//
// A held lock (409) is an expected answer: the user waits for as long as Retry-After says, and tries again. 503
// `Quorum not reached`, where too few servers replied, has a threshold of its own. Each other status than 200 is an
// error.

import http from 'k6/http';
import { check, sleep } from 'k6';
import exec from 'k6/execution';
import { Counter, Rate, Trend } from 'k6/metrics';
import {
  HOST, LOAD, count, errorRate, expectService, figure, isShort, limit, number, quantile, report, rounded, thresholds,
  trendStats, users,
} from './lib/run.js';

const ROUTES = ['simple', 'redlock'];
const USERS = users(40, 20);
const RESOURCES = number('PYBENCH_RESOURCES', 20);
const P95_MS = number('PYBENCH_P95_MS', 500);
const LONGEST_PAUSE_S = 5;
const [UP, LEVEL] = isShort ? ['1s', '4s'] : ['10s', '50s'];

// k6 counts other statuses as failed requests: here these three are answers.
http.setResponseCallback(http.expectedStatuses(200, 409, 503));

const errors = new Rate('errors');
const noQuorumRate = new Rate('no_quorum_rate');
const of = (Metric, name) => Object.fromEntries(ROUTES.map((route) => [route, new Metric(`${name}_${route}`)]));
const granted = of(Counter, 'granted');
const locked = of(Counter, 'locked');
const noQuorum = of(Counter, 'no_quorum');
const acquire = Object.fromEntries(ROUTES.map((route) => [route, new Trend(`acquire_${route}`)]));

const LIMITS = [
  quantile(95, P95_MS),
  errorRate(0.01),
  limit('no_quorum_rate', '<', 0.1, 'no_quorum_rate', 'rate'),
  // The least of both is more than 0 if each is.
  ...ROUTES.map((route) => limit(`granted_${route}`, '>', 0, `granted_${route}`, 'count')),
];

export const options = {
  scenarios: {
    level: {
      executor: 'ramping-vus',
      startVUs: 0,
      stages: [{ duration: UP, target: USERS }, { duration: LEVEL, target: USERS }],
      gracefulStop: '2s',
      tags: LOAD,
    },
  },
  thresholds: thresholds(LIMITS),
  summaryTrendStats: trendStats,
};

export function setup() {
  expectService(http.get(`${HOST}/health`));
  [granted, locked, noQuorum].forEach((counters) => ROUTES.forEach((route) => counters[route].add(0)));
}

export default function client() {
  const route = ROUTES[exec.vu.idInTest % ROUTES.length];
  const resource = `${route}-${Math.floor(Math.random() * RESOURCES)}`;
  const start = Date.now();
  let pause = attempt(route, resource, start);
  while (pause !== null) {
    sleep(pause);
    pause = attempt(route, resource, start);
  }
  sleep(0.05 + 0.15 * Math.random());
}

// One attempt: the pause in seconds until the next; null after a grant or an error.
function attempt(route, resource, start) {
  const answer = http.post(`${HOST}/api/locks/${route}/${resource}?ttl=1s`, null, {
    tags: { name: `/api/locks/${route}/[resource]` },
  });
  const isQuorum = answer.status === 503 && answer.json('error') === 'Quorum not reached';
  errors.add(!check(answer, { 'lock is answered': (r) => r.status === 200 || r.status === 409 || isQuorum }));
  if (route === 'redlock') noQuorumRate.add(isQuorum);
  if (answer.status === 200) {
    granted[route].add(1);
    acquire[route].add(Date.now() - start);
  }
  if (answer.status !== 409 && !isQuorum) return null;
  (isQuorum ? noQuorum : locked)[route].add(1);
  return Math.min(Number(answer.headers['Retry-After']), LONGEST_PAUSE_S);
}

export function handleSummary(data) {
  const groups = Object.fromEntries(ROUTES.map((route) => [route, {
    granted: count(data, `granted_${route}`),
    locked: count(data, `locked_${route}`),
    no_quorum: count(data, `no_quorum_${route}`),
    acquire_p50_ms: rounded(figure(data, `acquire_${route}`, 'med'), 1),
    acquire_p99_ms: rounded(figure(data, `acquire_${route}`, 'p(99)'), 1),
  }]));
  const sum = (name) => Object.values(groups).reduce((total, group) => total + group[name], 0);
  const metrics = {
    granted: sum('granted'), locked: sum('locked'), no_quorum: sum('no_quorum'),
    ...Object.fromEntries(ROUTES.map((route) => [`granted_${route}`, groups[route].granted])),
    no_quorum_rate: figure(data, 'no_quorum_rate', 'rate'),
  };
  return report(data, {
    scenario: 'lock_api',
    settings: { users: USERS, resources: RESOURCES, p95_ms: P95_MS },
    limits: LIMITS,
    conclusion: `${metrics.granted} locks were granted; ${metrics.locked} attempts met a held lock.`,
    metrics,
    groups,
  });
}
