import type { Choices } from '@vmwright/simulation';

/** Index of an object that the sequence created, counted from the newest; `none` is an object that never existed. */
export type Which = number | 'none';

export type Operation =
  | { readonly do: 'createFolder'; readonly in: Which; readonly name: string }
  | {
      readonly do: 'clone';
      readonly from: 'template' | 'machine' | 'none';
      readonly in: Which;
      readonly name: string;
      readonly pool: boolean;
      readonly config: Config;
      readonly uuid: number | undefined;
      readonly powerOn: boolean;
    }
  | { readonly do: 'reconfigure'; readonly which: Which; readonly config: Config }
  | {
      readonly do: 'powerOn' | 'powerOff' | 'shutDown' | 'destroy' | 'read' | 'find';
      readonly which: Which;
    }
  | { readonly do: 'destroyFolder' | 'readFolder'; readonly which: Which }
  | { readonly do: 'renameFolder'; readonly which: Which; readonly name: string }
  | { readonly do: 'setAttribute'; readonly which: Which; readonly value: string }
  | { readonly do: 'lookUp'; readonly path: string }
  | { readonly do: 'template'; readonly name: string }
  /** The next request is sent without a session, as if the session had expired. */
  | { readonly do: 'loseSession' }
  /** The next response with updates is lost. */
  | { readonly do: 'loseUpdates' }
  /** A login with a wrong password. */
  | { readonly do: 'wrongPassword' };

export interface Config {
  readonly cpus?: number;
  readonly memoryMb?: number;
  readonly extraConfig?: Readonly<Record<string, string>>;
}

const NAMES = ['a', 'b', 'c', 'a', 'b', 'a & <b>', 'x.y_z'] as const;
const PATHS = ['a', 'b', 'a/b', 'a/b/c', 'c/a'] as const;
const CONFIGS: readonly [Config, ...Config[]] = [
  {},
  { cpus: 2 },
  { cpus: 4, memoryMb: 2_048, extraConfig: { 'vmwright.uid': 'x', 'vmwright.slot': '1' } },
  { memoryMb: 512 },
  { extraConfig: { 'vmwright.uid': '', 'vmwright.slot': '2' } },
  { extraConfig: { 'vmwright.uid': 'naïve <&> "☃"' } },
];

/** Draws a sequence of operations. */
export function sequence(choices: Choices): readonly Operation[] {
  return Array.from({ length: 8 + choices.pick(14) }, () => operation(choices));
}

function operation(choices: Choices): Operation {
  const which = (): Which => (choices.oneIn(8) ? 'none' : choices.pick(4));
  const kinds = [
    ...([
      'clone',
      'clone',
      'clone',
      'clone',
      'createFolder',
      'createFolder',
      'reconfigure',
      'reconfigure',
    ] as const),
    ...([
      'powerOn',
      'powerOn',
      'powerOff',
      'shutDown',
      'destroy',
      'destroy',
      'destroyFolder',
      'renameFolder',
      'read',
      'readFolder',
    ] as const),
    ...(['setAttribute', 'setAttribute', 'lookUp', 'lookUp', 'template', 'find'] as const),
    ...(['loseSession', 'loseUpdates', 'wrongPassword'] as const),
  ] as const;
  const kind = choices.one(kinds);
  switch (kind) {
    case 'createFolder':
      return { do: kind, in: which(), name: choices.one(NAMES) };
    case 'clone':
      return {
        do: kind,
        from: choices.one(['template', 'template', 'template', 'machine', 'none'] as const),
        in: which(),
        name: choices.one(NAMES),
        pool: !choices.oneIn(6),
        config: choices.one(CONFIGS),
        uuid: choices.oneIn(2) ? choices.pick(1_000_000) : undefined,
        powerOn: choices.oneIn(2),
      };
    case 'renameFolder':
      return { do: kind, which: which(), name: choices.one(NAMES) };
    case 'reconfigure':
      return { do: kind, which: which(), config: choices.one(CONFIGS) };
    case 'setAttribute':
      return { do: kind, which: which(), value: choices.one(['owner', 'other', '', '<&>'] as const) };
    case 'lookUp':
      return { do: kind, path: choices.one(PATHS) };
    case 'template':
      return { do: kind, name: choices.one(['template-1', 'template-2', 'missing'] as const) };
    case 'loseSession':
    case 'loseUpdates':
    case 'wrongPassword':
      return { do: kind };
    default:
      return { do: kind, which: which() };
  }
}
