/** The six controllers and the program that runs them. */
export {};
