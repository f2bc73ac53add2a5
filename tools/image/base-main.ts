/** `make base`: prints the reference of the base image with the digest that its tag has now. */
import { DISTROLESS, resolvedReference } from './base.ts';

console.log(resolvedReference(DISTROLESS));
