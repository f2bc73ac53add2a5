import { expect, test } from 'vitest';
import { folderProblem } from './folder-path.ts';

test.each(['vm-operator', 'a/b', '/a/b/', '/DC0/vm/a', 'a/b/c/d/e/f/g/h', 'x'.repeat(80)])(
  'the path %s is accepted',
  (path) => expect(folderProblem(path)).toBeUndefined(),
);

test.each([
  ['', 'must name a folder'],
  ['/', 'must name a folder'],
  ['a//b', 'must name a folder'],
  ['a/./b', "must not contain the segments '.' and '..'"],
  ['..', "must not contain the segments '.' and '..'"],
  ['a/b/c/d/e/f/g/h/i', 'has more than 8 segments'],
  ['x'.repeat(81), 'has a segment of more than 80 characters'],
  ['abc/'.repeat(70), 'has more than 255 characters'],
])('the path %s is rejected: %s', (path, problem) => expect(folderProblem(path)).toContain(problem));
