module.exports = (output, context) => output === context.vars.out;
module.exports.short = (output) => ({ pass: output.length < 5, score: output.length < 5 ? 1 : 0, reason: "its length" });
