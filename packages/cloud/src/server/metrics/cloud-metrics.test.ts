import { parseExposition, sampleOf } from '@vmwright/core/testing';
import { expect, test } from 'vitest';
import { CloudMetrics } from './cloud-metrics.ts';

test('CloudMetrics.text returns the metrics in the format of Prometheus, with the labels of each request', () => {
  const metrics = new CloudMetrics();
  metrics.requestHandled('/servers/{id}', 'GET', 200, 0.02);
  metrics.operationFinished('start', 'error');
  const text = metrics.text(new Map());
  expect(() => parseExposition(text)).not.toThrow();
  const labels = { route: '/servers/{id}', method: 'GET', code: '200' };
  expect(sampleOf(text, 'vmwright_cloud_http_request_duration_seconds_sum', labels)).toBe(0.02);
  const operation = { operation: 'start', result: 'error' };
  expect(sampleOf(text, 'vmwright_cloud_driver_operations_total', operation)).toBe(1);
});

test('every server state has a series, even if no server is in that state', () => {
  const text = new CloudMetrics().text(new Map([['running', 2]]));
  expect(text.match(/^vmwright_cloud_servers.*$/gm)).toEqual([
    'vmwright_cloud_servers{state="building"} 0',
    'vmwright_cloud_servers{state="running"} 2',
    'vmwright_cloud_servers{state="failed"} 0',
    'vmwright_cloud_servers{state="deleting"} 0',
  ]);
});
