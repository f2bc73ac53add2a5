/**
 * Returns the page with the text between `<!-- generated: name -->` and `<!-- end -->` replaced.
 * @throws Error if the page has no such section
 */
export function withSection(page: string, name: string, text: string): string {
  const section = new RegExp(`(<!-- generated: ${name} -->\n).*?(<!-- end -->)`, 's');
  if (!section.test(page)) throw new Error(`the page has no section <!-- generated: ${name} -->`);
  return page.replace(section, (_, begin: string, end: string) => `${begin}\n${text}\n\n${end}`);
}
