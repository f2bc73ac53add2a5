import { once } from 'node:events';
import { createServer } from 'node:http';

/** A span that a collector received. */
export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly id: string;
  /** Id of the parent span; empty if it has none. */
  readonly parent: string;
  /** Duration in milliseconds. */
  readonly durationMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** A collector of OpenTelemetry spans: an HTTP server that accepts OTLP as JSON. */
export interface Collector extends AsyncDisposable {
  readonly url: string;
  /** All spans so far. */
  readonly spans: readonly ReceivedSpan[];
  /** Names of the services that sent spans. */
  readonly services: ReadonlySet<unknown>;
}

export async function startCollector(): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const services = new Set<unknown>();
  const server = createServer(async (request, response) => {
    const body: unknown = JSON.parse((await request.setEncoding('utf8').toArray()).join(''));
    for (const resource of list(field(body, 'resourceSpans'))) {
      services.add(attributesOf(field(resource, 'resource'))['service.name']);
      for (const scope of list(field(resource, 'scopeSpans')))
        spans.push(...list(field(scope, 'spans')).map(spanFrom));
    }
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the collector has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    spans,
    services,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function spanFrom(span: unknown): ReceivedSpan {
  const text = (name: string) => String(field(span, name) ?? '');
  return {
    name: text('name'),
    traceId: text('traceId'),
    id: text('spanId'),
    parent: text('parentSpanId'),
    durationMs: Number(BigInt(text('endTimeUnixNano')) - BigInt(text('startTimeUnixNano'))) / 1e6,
    attributes: attributesOf(span),
  };
}

function attributesOf(holder: unknown): Record<string, unknown> {
  const attributes = list(field(holder, 'attributes'));
  const value = (attribute: unknown) => Object.values(Object(field(attribute, 'value')))[0];
  return Object.fromEntries(attributes.map((each) => [field(each, 'key'), value(each)]));
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/**
 * Returns a field of an object. Copied from the testbed, because unit tests use this file and must not import the
 * testbed.
 */
function field(value: unknown, name: string): unknown {
  return Reflect.get(Object(value), name);
}
