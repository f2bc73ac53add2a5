import { setTimeout as sleep } from 'node:timers/promises';
import { field, type KubeObject } from '../kubernetes/api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import type { Part } from '../process/part.ts';

/** Tells of a part that ended by itself. */
export function watchParts(parts: readonly Part[], signal: AbortSignal, say: (line: string) => void): void {
  for (const part of parts) {
    void part.exited().then((exit) => {
      if (!signal.aborted)
        say(`${part.name} ended (${exit?.signal ?? `exit code ${exit?.code}`}); its log: ${part.log}`);
    });
  }
}

/** Tells of what the cluster reports: all warnings, and what concerns machines. */
export async function watchEvents(
  cluster: Cluster,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<void> {
  const told = new Set<string>();
  while (!signal.aborted) {
    try {
      for await (const { type, object } of cluster.api.watch('/api/v1/events', signal)) {
        const line = lineOf(object);
        if (type === 'DELETED' || line === undefined || told.has(line)) continue;
        told.add(line);
        say(line);
      }
    } catch {
      // The API server is away; that is told of by its own end.
    }
    await sleep(1_000, undefined, { signal }).catch(() => undefined);
  }
}

function lineOf(event: KubeObject): string | undefined {
  const text = (...path: readonly string[]) => String(field(event, ...path) ?? '');
  const kind = text('involvedObject', 'kind');
  const warning = text('type') === 'Warning';
  if (!warning && !kind.startsWith('VirtualMachine')) return undefined;
  const name = `${kind} ${text('involvedObject', 'namespace')}/${text('involvedObject', 'name')}`;
  return `${warning ? 'warning: ' : ''}${name}: ${text('reason')}: ${text('message')}`;
}
