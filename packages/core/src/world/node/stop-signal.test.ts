import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';

const PROGRAM = `
  import { stopSignal } from ${JSON.stringify(new URL('stop-signal.ts', import.meta.url).href)};
  const signal = stopSignal();
  signal.addEventListener('abort', () => console.log(signal.reason.message));
  setInterval(() => undefined, 1_000); // keeps the process alive
  console.log('running');
`;

test('the first SIGTERM or SIGINT aborts the AbortSignal of stopSignal, and the second one ends the process', async () => {
  const program = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void program.kill('SIGKILL'));
  const exited = once(program, 'exit');
  const lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
  expect((await lines.next()).value).toBe('running');
  program.kill('SIGTERM');
  expect((await lines.next()).value).toBe('received SIGTERM');
  program.kill('SIGINT');
  expect(await exited).toEqual([1, null]);
});
