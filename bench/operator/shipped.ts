import { type OperatorOptions, temporaryFolder } from '@vmwright/testbed';
import { bundle } from '../../tools/build/bundle.ts';
import { ENVIRONMENT, NODE_FLAGS } from '../../tools/build/launch.ts';

/** Bundles the operator, and returns the command and the environment variables with which it is shipped. */
export async function shippedOperator(): Promise<Required<Pick<OperatorOptions, 'command' | 'env'>>> {
  const source = new URL('../../packages/operator/src/main.ts', import.meta.url);
  const { program } = await bundle(source, await temporaryFolder('bench'), 'vmwright');
  return { command: [process.execPath, ...NODE_FLAGS, program], env: ENVIRONMENT };
}
