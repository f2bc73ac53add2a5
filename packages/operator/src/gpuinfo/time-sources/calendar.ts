import type { Maintenance } from '../candidate.ts';
import type { Glob } from '../glob.ts';
import { occurrences, type Recurrence } from './recurrence.ts';

/** Selects the nodes of a maintenance window. A node must match every field that is set. */
interface WindowNodes {
  /** Patterns of node names. */
  readonly nodes: readonly Glob[] | undefined;
  /** Patterns of the names of ESXi hosts. */
  readonly hosts: readonly Glob[] | undefined;
  readonly nodeSelector: Readonly<Record<string, string>> | undefined;
}

/** A maintenance window in the calendar. It occurs once or is repeated. */
export interface CalendarWindow extends WindowNodes {
  readonly name: string;
  readonly time: { readonly startsAt: number; readonly endsAt: number } | Recurrence;
}

/** Properties of a node that decide whether a window selects it. */
export interface CalendarNode {
  readonly name: string;
  readonly host: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Planned maintenance from a calendar file. */
export class Calendar {
  readonly #windows: readonly { window: CalendarWindow; listed?: Listed }[];

  constructor(windows: readonly CalendarWindow[]) {
    this.#windows = windows.map((window) => ({ window }));
  }

  get size(): number {
    return this.#windows.length;
  }

  /** Returns the current windows of a node and the next ones, in no particular order. */
  maintenanceOf(node: CalendarNode, now: number): readonly Maintenance[] {
    return this.#windows.flatMap((each) => {
      if (!concerns(each.window, node)) return [];
      // The occurrences of a window are computed once for all nodes and kept until `listed.until`, because conversions
      // of time zones are slow.
      if (each.listed === undefined || each.listed.until <= now || each.listed.from > now)
        each.listed = list(each.window, now);
      return each.listed.maintenance;
    });
  }
}

interface Listed {
  readonly maintenance: readonly Maintenance[];
  /** Start and end of the time for which the list is complete. */
  readonly from: number;
  readonly until: number;
}

const HOUR_MS = 60 * 60 * 1_000;

function list({ name, time }: CalendarWindow, now: number): Listed {
  const source = `calendar '${name}'`;
  if ('startsAt' in time)
    return {
      maintenance: time.endsAt > now ? [{ ...time, source }] : [],
      from: now,
      until: time.endsAt > now ? time.endsAt : Number.POSITIVE_INFINITY,
    };
  const maintenance = occurrences(time, source, now);
  const ends = maintenance.flatMap(({ endsAt }) => endsAt ?? []);
  return { maintenance, from: now, until: Math.min(now + HOUR_MS, ...ends) };
}

function concerns(
  { nodes, hosts, nodeSelector }: WindowNodes,
  { name, host, labels }: CalendarNode,
): boolean {
  const matches = (patterns: readonly Glob[] | undefined, text: string) =>
    patterns === undefined || patterns.some((pattern) => pattern.matches(text));
  return (
    matches(nodes, name) &&
    matches(hosts, host) &&
    Object.entries(nodeSelector ?? {}).every(([key, value]) => labels[key] === value)
  );
}
