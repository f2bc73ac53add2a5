import type { TestProject } from 'vitest/node';
import { Broker } from './broker.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of the broker that provides shared parts. */
    testbed: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const broker = await Broker.start();
  project.provide('testbed', broker.url);
  return () => broker[Symbol.asyncDispose]();
}
