import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from '../src/runner/arguments.ts';
import { duration } from '../src/runner/numbers.ts';
import { lineOf, ProgressLine } from '../src/runner/progress.ts';
import { readable } from '../src/runner/readable.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));

function run(program: string, args: readonly string[]) {
  const { MAKEFLAGS, MAKELEVEL, ...env } = process.env; // otherwise, make would run as a sub-make of `make test`
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: root, encoding: 'utf8', env });
  return { status, stdout, stderr };
}

/** Runs make. The flag `-o` prevents it from installing packages during a test. */
const make = (...args: string[]) => run('make', ['-o', 'node_modules/.package-lock.json', ...args]);

/** Returns the make arguments of the commands in a docs page, such as `['simulate', 'SEEDS=10']`. */
function commandsIn(page: string): readonly (readonly string[])[] {
  const docs = readFileSync(`${root}docs/${page}`, 'utf8');
  const blocks = [...docs.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text = '']) => text);
  const lines = blocks.flatMap((text) => text.split('\n')).map((line) => line.replace(/ *#.*/, ''));
  return lines.filter(Boolean).map((line) => {
    const [program, ...args] = [...line.matchAll(/(?:[^\s"]|"[^"]*")+/g)].map(([word]) =>
      word.replaceAll('"', ''),
    );
    expect(program).toBe('make');
    return args;
  });
}

const simulate = (...args: string[]) =>
  run(process.execPath, ['packages/simulation/src/main.ts', 'WORKERS=2', ...args]);

describe('make simulate', () => {
  test('make simulate prints a summary of many seeds', () => {
    const { status, stdout } = simulate('SCENARIO=greeter', 'SEEDS=100');
    expect(stdout).toMatch(/^greeter: 100 seeds from 1 in .* on 2 threads, .*\/s a core; /m);
    expect(stdout).toMatch(/^ +\d+ {2}request lost$/m);
    expect(stdout).toContain('no violations');
    expect(status).toBe(0);
  });

  test('make simulate exits with 1 on a violation and prints a command that replays it', () => {
    const { status, stdout } = simulate('SCENARIO=careless-greeter', 'SEEDS=100');
    expect(stdout).toMatch(
      /^ +\d+ {2}seeds violate "every greeting is answered once the faults have stopped", first /m,
    );
    expect(status).toBe(1);
    const [, ...replay] =
      /replay the first violation with: make simulate (SCENARIO=\S+) (SEED=\d+)/.exec(stdout) ?? [];
    expect(replay).toHaveLength(2);
    const replayed = simulate(...replay);
    expect(replayed.status).toBe(1);
    expect(replayed.stdout).toMatch(/^ +\d+\.\d{3} s {2}user +patch greetings default\/greeting-0 → 20\d$/m);
    expect(replayed.stdout).toContain(
      '"every greeting is answered once the faults have stopped" is violated: ',
    );
    const shrunk = simulate(...replay, 'SHRINK=1');
    expect(shrunk.status).toBe(1);
    expect(shrunk.stdout).toMatch(/shrunk from \d+ choices to \d+ in \d+ tries/);
    expect(shrunk.stdout.length).toBeLessThan(replayed.stdout.length);
  });

  test('make simulate rejects an unknown scenario and an invalid number with an error message', () => {
    expect(simulate('SCENARIO=gretter')).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/^scenario "gretter" does not exist; available: greeter, /),
    });
    expect(simulate('SEEDS=many')).toMatchObject({
      status: 2,
      stdout: '',
      stderr: 'SEEDS must be an integer of at least 1, not "many"\n',
    });
  });

  test('every command in docs/internals/simulation.md works', { timeout: 300_000 }, () => {
    const commands = commandsIn('internals/simulation.md').filter(([target]) => target === 'simulate');
    expect(commands.length).toBeGreaterThan(5);
    for (const [, ...args] of commands) {
      const small = args.map((arg) =>
        arg.replace(/^SEEDS=\d+/, 'SEEDS=20').replace(/^MINUTES=\d+/, 'MINUTES=0.01'),
      );
      if (!small.some((arg) => /^(SEEDS?|MINUTES)=/.test(arg))) small.push('SEEDS=20');
      const { status, stdout, stderr } = make('simulate', ...small);
      const failing = args.join().includes('careless');
      expect(status, `make simulate ${small.join(' ')}: ${stdout}${stderr}`).toBe(failing ? 2 : 0);
      expect(stdout).toMatch(failing ? /violate/ : /no violations/);
    }
  });
});

describe('make mutants', () => {
  test('make mutants with ONLY finds the mutant that docs/internals/simulation.md names', {
    timeout: 300_000,
  }, () => {
    const commands = commandsIn('internals/simulation.md').filter(([target]) => target === 'mutants');
    const [named, whole, ...others] = commands;
    expect([whole, others]).toEqual([['mutants'], []]);
    const { status, stdout } = make(...(named ?? []));
    expect(stdout).toMatch(/^ +seed \d+ {2}.+: .+$/m);
    expect(status).toBe(0);
  });

  test('make mutants fails with a message if no mutant matches ONLY', () => {
    expect(make('mutants', 'ONLY=no such mutant')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('no mutant has a name that contains "no such mutant"'),
    });
  });

  test('docs/internals/simulation.md uses only the make targets simulate and mutants', () => {
    expect(new Set(commandsIn('internals/simulation.md').map(([target]) => target))).toEqual(
      new Set(['simulate', 'mutants']),
    );
  });
});

describe('arguments', () => {
  test('the command line takes precedence over the environment', () => {
    expect(parse([], {})).toEqual({ from: 1, count: 10_000, shrink: false });
    expect(parse(['SEEDS=5', 'FROM=9'], { SEEDS: '7', SCENARIO: 'a', PATH: 'x', SEED: '' })).toEqual({
      scenario: 'a',
      from: 9,
      count: 5,
      shrink: false,
    });
    expect(parse(['MINUTES=0.5', 'WORKERS=3'], {})).toEqual({
      from: 1,
      minutes: 0.5,
      workers: 3,
      shrink: false,
    });
    expect(parse(['SEED=0', 'SHRINK=1'], {})).toMatchObject({ seed: 0, shrink: true });
  });

  test.for([
    [['SEEDS=0'], 'SEEDS must be an integer of at least 1, not "0"'],
    [['SEED=1.5'], 'SEED must be an integer of at least 0, not "1.5"'],
    [['SEED='], 'SEED must be an integer of at least 0, not ""'],
    [['SEED=99999999999999999999'], 'SEED must be an integer of at least 0'],
    [['MINUTES=-1'], 'MINUTES must be a number greater than 0, not "-1"'],
    [['SHRINK=yes', 'SEED=1'], 'SHRINK must be 1 or 0, not "yes"'],
    [['SHRINK=1'], 'SHRINK=1 requires SEED'],
    [['SEEDS=1', 'MINUTES=1'], 'SEEDS and MINUTES cannot be combined'],
    [['SEED=1', 'FROM=1'], 'SEED and FROM cannot be combined: SEED replays one seed'],
    [['seed=1'], 'unknown argument "seed=1"; supported: SCENARIO=, SEED=, '],
    [['--help'], 'unknown argument "--help"'],
  ] as const)('parse rejects %j: %s', ([args, sentence]) => {
    expect(() => parse(args, {})).toThrow(sentence);
  });
});

describe('progress', () => {
  const progress = { seeds: 25_000, violating: 3, elapsedMs: 50_000, part: 0.25 };

  test('progress shows a bar, the rate, the violations and the remaining time', () => {
    expect(lineOf('greeter', progress)).toBe(
      'greeter [██████░░░░░░░░░░░░░░░░░░] 25 % · 25,000 seeds · 500/s · 3 violating · 2 min 30 s left',
    );
  });

  test('progress updates a single line on a terminal, and appends a few lines to a file', () => {
    for (const [isTTY, lines] of [
      [true, 100],
      [false, 2],
    ] as const) {
      let now = 0;
      const written: string[] = [];
      const line = new ProgressLine({ isTTY, write: (text) => written.push(text) }, () => now);
      for (now = 0; now <= 20_000; now += 200) line.update('greeter', progress);
      expect(written).toHaveLength(lines);
      expect(written.every((text) => (isTTY ? text.startsWith('\r') : text.endsWith('\n')))).toBe(true);
    }
  });

  test('duration formats short and long durations', () => {
    expect([400, 42_000, 60_000, 200_000, 18_720_000, 273_600_000].map(duration)).toEqual([
      '0.4 s',
      '42 s',
      '1 min',
      '3 min 20 s',
      '5 h 12 min',
      '3 d 4 h',
    ]);
  });
});

test.for([
  [
    'PATCH /apis/g.dev/v1/namespaces/default/greetings/moon/status?fieldManager=x → 200',
    'patch greetings default/moon/status → 200',
  ],
  ['late: GET /api/v1/namespaces/default/configmaps/a', 'late: get configmaps default/a'],
  ['GET /api/v1/nodes/n → 404', 'get nodes n → 404'],
  ['GET /apis/g.dev/v1/greetings?watch=true&resourceVersion=7 → 200', 'watch greetings from @7 → 200'],
  [
    'GET /apis/g.dev/v1/greetings?watch=true&sendInitialEvents=true → 200',
    'watch greetings from the start → 200',
  ],
  ['GET /api/v1/namespaces/a/pods?limit=5&continue=x → 410', 'list pods in a next page → 410'],
  ['POST /api/v1/namespaces/a/pods → 201', 'create pods in a → 201'],
  ['POST /machines → 201', 'POST /machines → 201'],
  ['crashes and comes back', 'crashes and comes back'],
] as const)('readable() shortens %s to: %s', ([line, shown]) => {
  expect(readable(line)).toBe(shown);
});
