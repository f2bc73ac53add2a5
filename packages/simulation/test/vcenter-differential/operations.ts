import type { Choices } from '@vmwright/simulation';

/** One of those that the sequence has seen, the newest first; or one that never was. */
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
  | { readonly do: 'mark'; readonly which: Which; readonly value: string }
  | { readonly do: 'lookUp'; readonly path: string }
  | { readonly do: 'template'; readonly name: string }
  /** The next request comes without a session, as after that was ended. */
  | { readonly do: 'loseSession' }
  /** The next answer about changes does not arrive. */
  | { readonly do: 'loseUpdates' }
  | { readonly do: 'intrude' };

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

/** What is done in a history, the same for the same choices. */
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
      'destroyFolder',
      'read',
      'readFolder',
    ] as const),
    ...(['mark', 'mark', 'lookUp', 'template', 'find', 'loseSession', 'loseUpdates', 'intrude'] as const),
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
    case 'reconfigure':
      return { do: kind, which: which(), config: choices.one(CONFIGS) };
    case 'mark':
      return { do: kind, which: which(), value: choices.one(['owner', 'other', '', '<&>'] as const) };
    case 'lookUp':
      return { do: kind, path: choices.one(PATHS) };
    case 'template':
      return { do: kind, name: choices.one(['template-1', 'template-2', 'nobody'] as const) };
    case 'loseSession':
    case 'loseUpdates':
    case 'intrude':
      return { do: kind };
    default:
      return { do: kind, which: which() };
  }
}
