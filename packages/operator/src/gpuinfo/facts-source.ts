import type { Facts } from './candidate.ts';

/** Source of the facts that the allocation is based on. */
export interface FactsSource {
  /** The facts as they are now. */
  readonly facts: Facts;
  /** Calls the listener after changes that increase the version of the facts. */
  subscribe(listener: () => void): unknown;
}
