// 50 users race for a stock of one. k6 exits with 99 unless exactly one of them gets the item.
//
//   k6 run load-tests/oversell.js
//   k6 run -e PYBENCH_LOCK_STRATEGY=none load-tests/oversell.js

import http from 'k6/http';
import { check, sleep } from 'k6';
import { Counter, Gauge, Rate } from 'k6/metrics';
import { HOST, LOAD, count, expectService, figure, limit, report, thresholds, trendStats, users } from './lib/run.js';

const PRODUCT = 'oversell';
const STRATEGY = __ENV.PYBENCH_LOCK_STRATEGY || 'safe';
const BUYERS = users(50, 50);
const GATE_MS = 1000;

const sold = new Counter('sold');
const refused = new Counter('refused');
const answers = new Counter('answers');
const stockLeft = new Gauge('stock_left');
const errors = new Rate('errors');

const LIMITS = [
  limit('sold', '==', 1, 'sold', 'count'),
  limit('stock_left', '==', 0, 'stock_left', 'value'),
  limit('answers', '>=', BUYERS, 'answers', 'count'),
];

export const options = {
  scenarios: {
    race: { executor: 'per-vu-iterations', vus: BUYERS, iterations: 1, maxDuration: '60s', tags: LOAD },
  },
  thresholds: thresholds(LIMITS),
  summaryTrendStats: trendStats,
};

const post = (path, body) =>
  http.post(`${HOST}${path}`, JSON.stringify(body), { headers: { 'Content-Type': 'application/json' } });

export function setup() {
  expectService(post('/reset', { product_id: PRODUCT, stock: 1 }));
  // A counter that nobody adds to is missing in the summary.
  [sold, refused, answers].forEach((counter) => counter.add(0));
  return { start: Date.now() + GATE_MS };
}

export default function race({ start }) {
  sleep(Math.max(0, start - Date.now()) / 1000);
  const answer = post('/purchase', { product_id: PRODUCT, quantity: 1, lock_strategy: STRATEGY });
  const isAnswer = check(answer, { 'purchase is answered': (r) => r.status === 200 });
  errors.add(!isAnswer);
  if (isAnswer) {
    answers.add(1);
    (answer.json('success') ? sold : refused).add(1);
  }
}

export function teardown() {
  stockLeft.add(expectService(http.get(`${HOST}/stock/${PRODUCT}`)).json('stock'));
}

export function handleSummary(data) {
  const metrics = {
    sold: count(data, 'sold'),
    refused: count(data, 'refused'),
    answers: count(data, 'answers'),
    stock_left: figure(data, 'stock_left', 'value'),
  };
  return report(data, {
    scenario: 'oversell',
    settings: { users: BUYERS, lock_strategy: STRATEGY },
    limits: LIMITS,
    conclusion: sentence(metrics),
    metrics,
  });
}

function sentence({ sold: got, answers: answered, stock_left: left }) {
  if (answered < BUYERS) {
    return `${got} of ${BUYERS} buyers got the only item; the requests of ${BUYERS - answered} failed.`;
  }
  const stock = got === 1 && left !== 0 ? `, but the stock is ${left} and not 0` : '';
  return `${got} of ${BUYERS} buyers got the only item${stock}.`;
}
