import fc from "fast-check";

const seed = Number(process.env.BERTH_TEST_SEED);
if (Number.isInteger(seed)) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });

/** fast-check, which draws the cases of one run from the seed of that run: BERTH_TEST_SEED, which vitest.config.ts takes from the commit. */
export default fc;
