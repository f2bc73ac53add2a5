import type { schema } from '@vmwright/runtime';

/** vCenter's limit for names. */
const MAX_SEGMENT_LENGTH = 80;
const MAX_SEGMENTS = 8;
export const MAX_PATH_LENGTH = 255;

/** CEL rules of `placement.folder`. They also reject the root: a group must not watch the whole datacenter. */
export const FOLDER_RULES: readonly schema.Rule[] = [
  {
    rule: "self.matches('^/?[^/]+(/[^/]+)*/?$')",
    message: 'folder must be a path such as a/b, without empty segments',
  },
  {
    rule: "!self.matches('(^|/)[.]{1,2}(/|$)')",
    message: "folder must not contain the segments '.' and '..'",
  },
  {
    rule: `!self.matches('^/?([^/]+/){${MAX_SEGMENTS}}[^/]')`,
    message: `folder must have at most ${MAX_SEGMENTS} segments`,
  },
  {
    rule: `!self.matches('[^/]{${MAX_SEGMENT_LENGTH + 1}}')`,
    message: `each segment of folder must have at most ${MAX_SEGMENT_LENGTH} characters`,
  },
];

/**
 * Checks a path that the API server has not validated.
 * @returns the problem, for a message that begins with the name of the field
 */
export function folderProblem(path: string): string | undefined {
  const segments = path.replace(/^\/|\/$/g, '').split('/');
  if (path.length > MAX_PATH_LENGTH) return `has more than ${MAX_PATH_LENGTH} characters`;
  if (segments.includes('')) return 'must name a folder, without empty segments';
  if (segments.includes('.') || segments.includes('..')) return "must not contain the segments '.' and '..'";
  if (segments.length > MAX_SEGMENTS) return `has more than ${MAX_SEGMENTS} segments`;
  if (segments.some((segment) => segment.length > MAX_SEGMENT_LENGTH))
    return `has a segment of more than ${MAX_SEGMENT_LENGTH} characters`;
  return undefined;
}
