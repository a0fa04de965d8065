"""The modal lexicon `modal/1` of judge prompts, byte for byte as its digest says (`schema/JUDGE_PROMPT.md`)."""

TEXT = """\
# modal/1: how strongly a sentence binds, by the strongest term in it. One term a line: its level, then the term.
# At each place of a sentence the longest term counts, and what it covers counts no more. Level 0 covers words that
# hold a term and bind nobody. Lines with ! are terms of a consequence in numbers.
0 responsible
0 not only
0 反应
0 响应
0 对应
0 相应
0 适应
0 效应
0 应用
0 应答
0 供应
0 可靠
0 可信
0 可读
0 认可
0 许可
1 can
1 may
1 could
1 might
1 可以
1 可能
1 可
2 should
2 shouldn't
2 prefer
2 prefers
2 preferred
2 preferably
2 ought
2 recommended
2 应
2 应该
2 应当
2 建议
2 最好
3 must
3 mustn't
3 shall
3 require
3 requires
3 required
3 mandatory
3 need to
3 needs to
3 have to
3 has to
3 cannot
3 can't
3 can not
3 may not
3 do not ever
3 forbidden
3 prohibited
3 必须
3 必需
3 需要
3 务必
3 不得
3 不可
3 不能
3 禁止
3 严禁
4 always
4 never
4 only
4 solely
4 exclusively
4 invariably
4 without exception
4 in every case
4 in all cases
4 under no circumstances
4 under any circumstances
4 总是
4 始终
4 永远
4 永不
4 绝不
4 决不
4 一律
4 仅
4 只能
4 无一例外
! cap
! caps
! capped
! at most
! no more than
! no higher than
! no lower than
! at least
! automatically
! score =
! score is
! scores =
! set to
! reject
! rejects
! rejected
! disqualify
! disqualified
! fail
! fails
! zero points
! 一票否决
! 不超过
! 不高于
! 不低于
! 至多
! 最多
! 上限
! 自动
! 零分
! 拒绝
"""
