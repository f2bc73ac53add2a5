import type { Candidate, Warning } from './candidate.ts';
import { hasLabels } from './suitability.ts';

/**
 * Merges warnings with the same message into one warning, which has the nodes of all of them. If one of them has no
 * nodes, it concerns all nodes, and the merged warning has none either. Sorts the result by message.
 */
export function mergedWarnings(warnings: readonly Warning[]): readonly Warning[] {
  const merged = new Map<string, Warning>();
  for (const { message, nodes } of warnings) {
    const known = merged.get(message);
    const isGeneral = nodes === undefined || (known !== undefined && known.nodes === undefined);
    merged.set(message, isGeneral ? { message } : { message, nodes: [...(known?.nodes ?? []), ...nodes] });
  }
  return [...merged.values()].toSorted((a, b) => (a.message < b.message ? -1 : 1));
}

/**
 * Returns the messages of the warnings that concern a request. These are the warnings about its reserved node, about
 * nodes that match its selector, and about no particular node.
 * @param nodes candidates by name
 */
export function warningsFor(
  warnings: readonly Warning[],
  nodes: ReadonlyMap<string, Candidate>,
  request: {
    readonly nodeSelector: Readonly<Record<string, string>>;
    readonly reservedNode: string | undefined;
  },
): readonly string[] {
  const { nodeSelector, reservedNode } = request;
  const selector = Object.entries(nodeSelector);
  const isConcerned = (name: string) => {
    const labels = nodes.get(name)?.labels;
    return name === reservedNode || (labels !== undefined && hasLabels(labels, selector));
  };
  return warnings.flatMap(({ message, nodes: named }) =>
    named === undefined || named.some(isConcerned) ? [message] : [],
  );
}
