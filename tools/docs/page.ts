import { readFileSync, writeFileSync } from 'node:fs';

/** Returns the page with the text between `<!-- generated: name -->` and `<!-- end -->` replaced. @throws if the mark is missing */
export function withSection(page: string, name: string, text: string): string {
  const section = new RegExp(`(<!-- generated: ${name} -->\n).*?(<!-- end -->)`, 's');
  if (!section.test(page)) throw new Error(`the page has no section <!-- generated: ${name} -->`);
  return page.replace(section, (_, begin: string, end: string) => `${begin}\n${text}\n\n${end}`);
}

/** Writes a page; with `--check`, reports that it is out of date and sets the exit code instead. */
export function update(path: string, text: string): void {
  if (readFileSync(path, 'utf8') === text) return;
  if (process.argv[2] !== '--check') writeFileSync(path, text);
  else {
    console.error(`${path} is out of date; run \`make generate\` and commit the result`);
    process.exitCode = 1;
  }
}
