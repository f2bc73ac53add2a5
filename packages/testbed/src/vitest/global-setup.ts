import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { CanarySearches } from '../canaries/searches.ts';
import { Broker } from './broker.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of the broker that provides shared parts. */
    testbed: string;
  }
}

const SEARCHES = fileURLToPath(new URL('../../../../.vitest/canaries', import.meta.url));

/**
 * Starts the broker that provides shared parts. At the end of the run, stops the parts. Fails the run if a credential
 * was found in a place that must not contain credentials, such as a log.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const searches = CanarySearches.begin(SEARCHES);
  const broker = await Broker.start();
  project.provide('testbed', broker.url);
  return async () => {
    await broker[Symbol.asyncDispose]();
    console.log(searches.report());
  };
}
