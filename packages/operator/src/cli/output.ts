import { styleText } from 'node:util';

type Style = 'bold' | 'dim' | 'red' | 'yellow' | 'green';

/** Applies a style to a text. */
export type Paint = (style: Style, text: string) => string;

/** Leaves texts as they are. */
export const plain: Paint = (_, text) => text;

/** Returns a function that styles texts for a stream. Without a terminal or with NO_COLOR, it leaves them unstyled. */
function paintFor(stream: NodeJS.WriteStream = process.stdout): Paint {
  return (style, text) => styleText(style, text, { stream });
}

/** Prints a result: as JSON, or as text for people. */
export function printResult(isJson: boolean, data: unknown, text: (paint: Paint) => string): void {
  console.log(isJson ? JSON.stringify(data, undefined, 2) : text(paintFor()));
}
