import { KNOWN_VERSION } from '../vim25/schema.generated.ts';
import { Reader } from '../xml/reader.ts';

/** Older ones are not supported by anybody any more, and this is what every supported one understands. */
export const OLDEST_VERSION = '6.7';

/** Whether the first is a later version of the API than the second. */
export function isNewer(one: string, other: string): boolean {
  const [ones, others] = [one, other].map((version) => version.split('.').map(Number));
  for (let i = 0; i < Math.max(ones?.length ?? 0, others?.length ?? 0); i++) {
    const difference = (ones?.[i] ?? 0) - (others?.[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}

/**
 * The version to speak: the newest that the server offers and we know. Of a server that is younger than we are that is
 * one of its prior versions, in which it answers only what we know.
 */
export function agreedVersion(offered: readonly string[]): string | undefined {
  return offered
    .filter((version) => /^\d+(\.\d+)*$/.test(version) && !isNewer(version, KNOWN_VERSION))
    .reduce<string | undefined>(
      (best, each) => (best === undefined || isNewer(each, best) ? each : best),
      undefined,
    );
}

/** For a server that tells its own version and not which others it speaks: it speaks all older ones. */
export function cappedVersion(own: string): string {
  return agreedVersion([own]) ?? KNOWN_VERSION;
}

/** The versions in `/sdk/vimServiceVersions.xml`. @throws UnreadableAnswerError */
export function versionsIn(text: string): readonly string[] {
  const reader = new Reader(text);
  const all: string[] = [];
  reader.root();
  reader.children(() => {
    let name = '';
    const versions: string[] = [];
    reader.children(() => {
      if (reader.name === 'name') name = reader.text().trim();
      else if (reader.name === 'version') versions.push(reader.text().trim());
      else if (reader.name === 'priorVersions') reader.children(() => versions.push(reader.text().trim()));
      else reader.skip();
    });
    if (name === 'urn:vim25') all.push(...versions);
  });
  return all;
}
