import type { NodeClaim } from './kinds.ts';
import { Multimap } from './multimap.ts';

/** Karpenter's NodeClaims by the node that they belong to. */
export class NodeClaims {
  readonly #claims = new Map<string, NodeClaim>();
  readonly #byNode = new Multimap<string, string>();
  readonly #onChanged: (node: string) => void;

  /** @param onChanged called with each node whose claims have changed */
  constructor(onChanged: (node: string) => void) {
    this.#onChanged = onChanged;
  }

  onClaim(claim: NodeClaim, isGone: boolean): void {
    const { name } = claim.metadata;
    const before = this.#claims.get(name)?.status?.nodeName;
    const node = isGone ? undefined : claim.status?.nodeName;
    if (before !== undefined) this.#byNode.delete(before, name);
    if (node === undefined) this.#claims.delete(name);
    else {
      this.#claims.set(name, claim);
      this.#byNode.add(node, name);
    }
    for (const each of new Set([before, node])) if (each !== undefined) this.#onChanged(each);
  }

  /** Returns the claims of a node in order of their names. */
  of(node: string): readonly NodeClaim[] {
    return [...this.#byNode.get(node)].toSorted().flatMap((name) => this.#claims.get(name) ?? []);
  }
}
