/** A link of a Markdown page to another file of the repository, or to a heading of the same page. */
export interface RelativeLink {
  /** Path relative to the page; empty for the page itself. */
  readonly path: string;
  /** Anchor without `#`; undefined for the whole page. */
  readonly anchor: string | undefined;
}

/** Returns the relative links and images of a page, without those in code. */
export function linksIn(markdown: string): readonly RelativeLink[] {
  const text = withoutCodeBlocks(markdown).replace(/(`+)[^`].*?\1/g, (code) =>
    code.includes('](') ? '' : code,
  );
  return [...text.matchAll(/\]\(([^()\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path = '', anchor] = target.split('#');
      return { path, anchor };
    });
}

/** Returns the anchors of a page's headings, as GitHub derives them. */
export function anchorsIn(markdown: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const heading of headingsIn(markdown)) {
    const slug = slugOf(heading);
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Returns the texts of a page's headings. @param level number of `#`. @default all */
export function headingsIn(markdown: string, level?: number): readonly string[] {
  const marks = level === undefined ? '#{1,6}' : `#{${level}}`;
  const pattern = new RegExp(`^${marks} (.+)$`, 'gm');
  return [...withoutCodeBlocks(markdown).matchAll(pattern)].map(([, text = '']) => text);
}

function slugOf(heading: string): string {
  return heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

function withoutCodeBlocks(markdown: string): string {
  return markdown.replace(/^(```+).*?^\1$/gms, '');
}
