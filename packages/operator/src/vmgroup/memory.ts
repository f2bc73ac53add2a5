/** MB of vCenter, which are MiB, in one GiB of the spec. */
export const MB_IN_GIB = 1_024;
