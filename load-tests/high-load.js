// Purchases and stock queries: a ramp to 100 users in 30 s, 60 s at the peak, down in 10 s.
//
//   k6 run load-tests/high-load.js
//   k6 run -e PYBENCH_USERS=200 -e PYBENCH_P95_MS=250 load-tests/high-load.js
//
// A purchase that is refused (sold out, or the lock was not granted in time) is an answer, not an error.

import http from 'k6/http';
import { check, sleep } from 'k6';
import { Counter, Gauge, Rate } from 'k6/metrics';
import {
  HOST, LOAD, count, errorRate, expectService, figure, isShort, limit, number, quantile, report, thresholds, trendStats,
  users,
} from './lib/run.js';

const STOCK = 1000000;
const PRODUCTS = Array.from({ length: 20 }, (_, index) => `high-load-${index}`);
const STRATEGY = __ENV.PYBENCH_LOCK_STRATEGY || 'safe';
const USERS = users(100, 20);
const P95_MS = number('PYBENCH_P95_MS', 500);
const P99_MS = number('PYBENCH_P99_MS', 1000);
const MAX_ERROR_RATE = number('PYBENCH_MAX_ERROR_RATE', 0.1);
const [UP, LEVEL, DOWN] = isShort ? ['2s', '3s', '1s'] : ['30s', '60s', '10s'];

const sold = new Counter('sold');
const refused = new Counter('refused');
const taken = new Gauge('taken');
// Each confirmation adds 1, and teardown subtracts the items that left the shelves: it cannot read other counters.
const lostUpdates = new Counter('lost_updates');
const errors = new Rate('errors');

const LIMITS = [
  quantile(95, P95_MS),
  quantile(99, P99_MS),
  errorRate(MAX_ERROR_RATE),
  limit('lost_updates', '<=', 0, 'lost_updates', 'count'),
];

export const options = {
  scenarios: {
    ramp: {
      executor: 'ramping-vus',
      startVUs: 0,
      stages: [{ duration: UP, target: USERS }, { duration: LEVEL, target: USERS }, { duration: DOWN, target: 0 }],
      gracefulRampDown: '2s',
      gracefulStop: '2s',
      tags: LOAD,
    },
  },
  thresholds: thresholds(LIMITS),
  summaryTrendStats: trendStats,
};

const any = (list) => list[Math.floor(Math.random() * list.length)];
const post = (path, body) =>
  http.post(`${HOST}${path}`, JSON.stringify(body), { headers: { 'Content-Type': 'application/json' } });

export function setup() {
  PRODUCTS.forEach((product) => expectService(post('/reset', { product_id: product, stock: STOCK })));
  [sold, refused].forEach((counter) => counter.add(0));
}

export default function customer() {
  if (Math.random() < 0.8) buy();
  else ask();
  sleep(0.1 + 0.4 * Math.random());
}

function buy() {
  const answer = post('/purchase', { product_id: any(PRODUCTS), quantity: 1, lock_strategy: STRATEGY });
  const isAnswer = check(answer, { 'purchase is answered': (r) => r.status === 200 });
  errors.add(!isAnswer);
  if (!isAnswer) return;
  const isSold = answer.json('success');
  (isSold ? sold : refused).add(1);
  if (isSold) lostUpdates.add(1);
}

function ask() {
  const answer = http.get(`${HOST}/stock/${any(PRODUCTS)}`, { tags: { name: '/stock/[product]' } });
  errors.add(!check(answer, { 'stock is told': (r) => r.status === 200 && Number.isInteger(r.json('stock')) }));
}

export function teardown() {
  const stocks = PRODUCTS.map((product) => expectService(http.get(`${HOST}/stock/${product}`)).json('stock'));
  const items = stocks.reduce((sum, stock) => sum + STOCK - stock, 0);
  taken.add(items);
  lostUpdates.add(-items);
}

export function handleSummary(data) {
  const metrics = {
    sold: count(data, 'sold'),
    refused: count(data, 'refused'),
    taken: figure(data, 'taken', 'value'),
    // More items than confirmations are no fault: a purchase whose answer was lost is carried out, too.
    lost_updates: Math.max(count(data, 'lost_updates'), 0),
  };
  return report(data, {
    scenario: 'high_load',
    settings: {
      users: USERS, lock_strategy: STRATEGY, p95_ms: P95_MS, p99_ms: P99_MS, max_error_rate: MAX_ERROR_RATE,
    },
    limits: LIMITS,
    conclusion: `${metrics.sold} purchases were confirmed, and ${metrics.taken} items left the shelves.`,
    metrics,
  });
}
