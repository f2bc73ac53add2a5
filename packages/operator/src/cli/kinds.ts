import type { DeclaredKind } from '@vmwright/runtime';
import { resourceOf } from '@vmwright/runtime';
import { kindsOf } from '../declarations.ts';
import { didYouMean } from '../settings/did-you-mean.ts';
import { SettingsError } from '../settings/values.ts';

/** Kinds of vmwright. */
export const OWN_KINDS: readonly DeclaredKind[] = kindsOf();

/** An object that the user names on the command line. */
export interface Target {
  readonly kind: DeclaredKind;
  readonly name: string;
}

/**
 * Parses a reference such as `vm/web`. The first part is the kind, its plural, a short name or `plural.group`.
 * @throws SettingsError with the known kinds
 */
export function parseTarget(text: string, kinds: readonly DeclaredKind[] = OWN_KINDS): Target {
  const [kindName = '', name = '', ...more] = text.split('/');
  if (kindName === '' || name === '' || more.length > 0)
    throw new SettingsError(`"${text}" is not an object; write kind/name, such as vm/web`);
  const kind = kinds.find((each) => namesOf(each).includes(kindName.toLowerCase()));
  if (kind !== undefined) return { kind, name };
  const known = kinds.flatMap(namesOf);
  throw new SettingsError(
    `"${kindName}" is not a kind of vmwright${didYouMean(kindName, known)}; the kinds are ${kinds.map((each) => each.kind.toLowerCase()).join(', ')}`,
  );
}

function namesOf(kind: DeclaredKind): readonly string[] {
  const { singular, shortNames = [] } = kind.declaration;
  return [
    kind.kind.toLowerCase(),
    kind.plural,
    ...shortNames,
    ...(singular === undefined ? [] : [singular]),
    resourceOf(kind),
  ];
}
